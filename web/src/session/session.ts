// The session: who is logged in, and when it ends.
import { signal } from '@preact/signals';
import { get, post, type Session } from '../api';

export const session = signal<Session | undefined>(undefined);
// When the session ends unless something is done; 0 when there is none.
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
