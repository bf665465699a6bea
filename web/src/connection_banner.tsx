// Shows that the server is unreachable or shutting down, and when the page retries.
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
    return server.value?.draining ? <div class="banner" role="status">The server is shutting down and accepts no new work.</div> : null;
  }
  const seconds = Math.max(0, Math.ceil((retryAt.value - now) / 1000));
  return (
    <div class="banner bad">
      <span role="alert">{link.value === 'ending' ? 'The server is shutting down.' : 'The server does not respond.'} Your setup is kept.</span>
      <span class="number">{seconds > 0 ? `Retrying in ${seconds} s` : 'Retrying …'}</span>
      <button type="button" onClick={() => void probe()}>
        Retry now
      </button>
    </div>
  );
}
