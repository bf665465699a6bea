// The dashboard is a separate bundle, so that the calculator does not wait for its charts.
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';

export function DevicesLoader() {
  const [page, setPage] = useState<{ Page: ComponentType } | undefined>(undefined);
  const [wrong, setWrong] = useState(false);
  useEffect(() => {
    import('./devices').then(
      (module) => setPage({ Page: module.Devices }),
      () => setWrong(true),
    );
  }, []);
  if (wrong) return <p class="empty">This view could not be loaded. Reload the page when the server responds again.</p>;
  return page ? <page.Page /> : <p class="empty" role="status">Loading …</p>;
}
