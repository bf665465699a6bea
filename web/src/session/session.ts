// The session: the account and the expiry time.
import { signal } from '@preact/signals';
import { get, post, type Session } from '../api';

export const session = signal<Session | undefined>(undefined);
// When the session expires without activity; 0 if there is no session.
export const endsAt = signal(0);

export async function loadSession() {
  session.value = await get<Session>('/api/session');
  endsAt.value = session.value.required && session.value.authenticated ? Date.now() + (session.value.expires_in_seconds ?? 0) * 1000 : 0;
  return session.value;
}

export async function keepAlive() {
  await post('/api/session', {});
  await loadSession();
}

export async function logout() {
  await post('/logout', {});
  location.assign('/');
}
