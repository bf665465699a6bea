// Says when the server is gone or ending, and when the page tries again.
import { useEffect, useState } from 'preact/hooks';
import { loginNeeded } from './api';
import { link, probe, retryAt, server } from './connection';

export function ConnectionBanner() {
  const [now, setNow] = useState(Date.now());
  const lost = (link.value === 'lost' || link.value === 'ending') && !loginNeeded.value;
  useEffect(() => {
    if (!lost) return undefined;
    const timer = setInterval(() => setNow(Date.now()), 250);
    return () => clearInterval(timer);
  }, [lost]);
  if (!lost) {
    return server.value?.draining ? <div class="banner" role="status">The server is shutting down; it takes no new work.</div> : null;
  }
  const seconds = Math.max(0, Math.ceil((retryAt.value - now) / 1000));
  return (
    <div class="banner bad">
      <span role="alert">{link.value === 'ending' ? 'The server is shutting down.' : 'The server does not answer.'} What you set up is kept.</span>
      <span class="number">{seconds > 0 ? `Trying again in ${seconds} s` : 'Trying again …'}</span>
      <button type="button" onClick={() => void probe()}>
        Try now
      </button>
    </div>
  );
}
