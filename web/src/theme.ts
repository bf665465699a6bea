// Light or dark: follows the system until the user chooses. The choice is kept in this browser.
import { signal, effect } from '@preact/signals';
import { recall, remember } from './storage';

export type Theme = 'system' | 'light' | 'dark';
const kOrder: Theme[] = ['system', 'light', 'dark'];

export const theme = signal<Theme>(recall<Theme>('theme', 'system'));

effect(() => {
  remember('theme', theme.value);
  if (theme.value === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
});

export function nextTheme() {
  theme.value = kOrder[(kOrder.indexOf(theme.value) + 1) % kOrder.length];
}

// Canvases cannot read custom properties, so they redraw when this changes.
export const paletteVersion = signal(0);
const system = matchMedia('(prefers-color-scheme: dark)');
system.addEventListener('change', () => paletteVersion.value++);
effect(() => {
  theme.value;
  queueMicrotask(() => paletteVersion.value++);
});

export function colour(name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const resolved = getComputedStyle(probe).color;
  probe.remove();
  return resolved;
}
