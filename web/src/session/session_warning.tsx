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
      // Other requests may have extended the session, so check before warning the user.
      if (seconds < kWarnSeconds && !asking) {
        asking = true;
        try {
          const now = await loadSession();
          if (!now.authenticated) loginNeeded.value = true;
        } catch {
          // The connection banner reports this.
        }
        asking = false;
      }
    }, 1000);
    return () => clearInterval(timer);
  }, []);
  if (left > kWarnSeconds || loginNeeded.value) return null;
  const stay = () => void keepAlive().then(() => setLeft(Infinity));
  return (
    <Dialog title="Session expires soon" onClose={stay}>
      <p>The session ends in {formatSeconds(Math.max(0, Math.ceil(left)))}because of inactivity. Your setup is kept.</p>
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
