// Data kept in this browser. If the browser refuses, the data lives until the page is closed.
const kPrefix = 'tenon.';

export function recall<T>(key: string, fallback: T): T {
  try {
    const text = localStorage.getItem(kPrefix + key);
    return text === null ? fallback : (JSON.parse(text) as T);
  } catch {
    return fallback;
  }
}

export function remember(key: string, value: unknown) {
  try {
    localStorage.setItem(kPrefix + key, JSON.stringify(value));
  } catch {
    // Full or forbidden.
  }
}
