// What a screen reader is told: one polite live region for the whole page.
import { signal } from '@preact/signals';

const message = signal('');

export function announce(text: string) {
  // The same text twice is said twice only if the region changes in between.
  message.value = message.value === text ? `${text}\u00a0` : text;
}

export const Announcer = () => (
  <div class="hidden" role="status" aria-live="polite">
    {message.value}
  </div>
);
