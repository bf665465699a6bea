// Five minutes before an idle session ends: stay or leave.
import { useEffect, useState } from 'preact/hooks';
import { loginNeeded } from '../api';
import { Dialog } from '../parts/dialog';
import { formatSeconds } from '../numbers';
import { endsAt, keepAlive, loadSession, logout } from './session';

const kWarnSeconds = 300;

export function SessionWarning() {
  const [left, setLeft] = useState(Infinity);
  useEffect(() => {
    let asking = false;
    const timer = setInterval(async () => {
      if (endsAt.value === 0) return setLeft(Infinity);
      const seconds = (endsAt.value - Date.now()) / 1000;
      setLeft(seconds);
      // Other work may have prolonged it: ask before worrying anybody.
      if (seconds < kWarnSeconds && !asking) {
        asking = true;
        try {
          const now = await loadSession();
          if (!now.authenticated) loginNeeded.value = true;
        } catch {
          // The connection banner speaks of it.
        }
        asking = false;
      }
    }, 1000);
    return () => clearInterval(timer);
  }, []);
  if (left > kWarnSeconds || loginNeeded.value) return null;
  const stay = () => void keepAlive().then(() => setLeft(Infinity));
  return (
    <Dialog title="Still there?" onClose={stay}>
      <p>The session ends in {formatSeconds(Math.max(0, Math.ceil(left)))}, as nothing was done for a while. What you set up is kept.</p>
      <div class="row">
        <button type="button" class="primary" onClick={stay}>
          Stay logged in
        </button>
        <button type="button" onClick={() => void logout()}>
          Log out
        </button>
      </div>
    </Dialog>
  );
}
