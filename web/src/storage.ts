// What this browser remembers. A browser that refuses to is no error: everything then lives until the page goes.
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
