// A modal dialog on the browser's own element: it keeps the focus inside, Esc closes it, the focus returns.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

export function Dialog({ title, wide, onClose, children }: { title: string; wide?: boolean; onClose: () => void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    element.current?.showModal();
  }, []);
  return (
    <dialog ref={element} class={wide ? 'wide' : undefined} aria-labelledby="dialog-title" onClose={onClose} onClick={(event) => event.target === event.currentTarget && event.currentTarget.close()}>
      <div class="stack">
        <h2 id="dialog-title">{title}</h2>
        {children}
      </div>
    </dialog>
  );
}
