// Announcements for screen readers: one polite live region for the whole page.
import { signal } from '@preact/signals';

const message = signal('');

export function announce(text: string) {
  // A repeated text is announced again only if the region changes in between.
  message.value = message.value === text ? `${text}\u00a0` : text;
}

export const Announcer = () => (
  <div class="hidden" role="status" aria-live="polite">
    {message.value}
  </div>
);
