// The login: shows the remaining attempts and counts down a lockout.
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, loginNeeded, post, Problem, type Session } from '../api';
import { Eye } from '../parts/icons';
import { problemFrom } from '../parts/problem';
import { formatSeconds } from '../numbers';

export function Login({ onDone }: { onDone: () => void }) {
  const [password, setPassword] = useState('');
  const [account, setAccount] = useState('admin');
  const [shown, setShown] = useState(false);
  const [busy, setBusy] = useState(false);
  const [message, setMessage] = useState('');
  const [lockedUntil, setLockedUntil] = useState(0);
  const [now, setNow] = useState(Date.now());
  const locked = lockedUntil > now;
  const box = useRef<HTMLInputElement>(null);

  useEffect(() => {
    box.current?.focus();
    get<Session>('/api/session')
      .then((session) => session.locked_for_seconds && setLockedUntil(Date.now() + session.locked_for_seconds * 1000))
      .catch(() => undefined);
  }, []);
  useEffect(() => {
    if (!locked) return undefined;
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [locked]);

  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setMessage('');
    try {
      await post('/login', { account, password });
      setPassword('');
      loginNeeded.value = false;
      onDone();
    } catch (error) {
      const problem = problemFrom(error);
      if (problem.locked_for_seconds) {
        setNow(Date.now());
        setLockedUntil(Date.now() + problem.locked_for_seconds * 1000);
      } else if (error instanceof Problem && problem.status === 401) {
        const left = problem.remaining_attempts;
        setMessage(`The password is wrong.${left === undefined ? '' : ` ${left} ${left === 1 ? 'attempt' : 'attempts'} left.`}`);
      } else {
        setMessage(problem.detail);
      }
    }
    setBusy(false);
  };

  return (
    <form class="card stack login" onSubmit={submit} aria-labelledby="login-title">
      <h1 id="login-title" class="h2">Log in</h1>
      <p class="soft small">This server requires a login.</p>
      <div class="field">
        <label for="account">Account</label>
        <input id="account" type="text" autocomplete="username" value={account} onInput={(event) => setAccount(event.currentTarget.value)} />
      </div>
      <div class="field">
        <label for="password">Password</label>
        <div class="password">
          <input
            id="password" type={(shown ? 'text' : 'password') as 'password'} autocomplete="current-password" ref={box} value={password} disabled={locked} aria-describedby="login-note"
            onInput={(event) => setPassword(event.currentTarget.value)}
          />
          <button type="button" aria-pressed={shown} aria-label="Show the password" onClick={() => setShown(!shown)}>
            <Eye />
          </button>
        </div>
      </div>
      <p id="login-note" class="wrong" role="alert">
        {locked ? `Too many failed attempts. Try again in ${formatSeconds(Math.ceil((lockedUntil - now) / 1000))}.` : message}
      </p>
      <button type="submit" class="primary" disabled={busy || locked || password === ''}>
        {busy ? 'Checking …' : 'Log in'}
      </button>
    </form>
  );
}
