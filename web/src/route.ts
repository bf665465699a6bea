// The path of the address selects the view. The calculator's program follows the '#'.
import { signal } from '@preact/signals';

export type View = 'calculator' | 'models' | 'devices';
const viewOf = (path: string): View => (path.startsWith('/devices') ? 'devices' : path.startsWith('/models') ? 'models' : 'calculator');

export const view = signal<View>(viewOf(location.pathname));
addEventListener('popstate', () => (view.value = viewOf(location.pathname)));

export function go(path: string, event?: MouseEvent) {
  if (event && (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0)) return;
  event?.preventDefault();
  if (location.pathname + location.hash !== path) history.pushState(null, '', path);
  view.value = viewOf(path);
  scrollTo(0, 0);
}
