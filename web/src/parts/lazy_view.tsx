// A view that is a separate bundle, so that the calculator does not wait for it.
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';

export function LazyView({ load }: { load: () => Promise<ComponentType> }) {
  const [page, setPage] = useState<{ Page: ComponentType } | undefined>(undefined);
  const [wrong, setWrong] = useState(false);
  useEffect(() => {
    load().then(
      (Page) => setPage({ Page }),
      () => setWrong(true),
    );
  }, []);
  if (wrong) return <p class="empty">This view could not be loaded. Reload the page when the server responds again.</p>;
  return page ? <page.Page /> : <p class="empty" role="status">Loading …</p>;
}
