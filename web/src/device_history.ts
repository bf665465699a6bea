// What happened to devices, put together from events and snapshots; pure functions.
import type { Device, DeviceEvent } from './api';

// In the order of time. A restarted server counts its events from 1 again, so an event is known by its id and its time.
export function merged(known: readonly DeviceEvent[], list: readonly DeviceEvent[]): DeviceEvent[] {
  const seen = new Set(known.map((event) => `${event.id} ${event.time}`));
  const fresh = list.filter((event) => {
    const key = `${event.id} ${event.time}`;
    return !seen.has(key) && seen.add(key);
  });
  if (fresh.length === 0) return known as DeviceEvent[];
  return [...known, ...fresh].sort((a, b) => a.time - b.time || a.id - b.id);
}

export interface Other {
  device: string;
  who: string;
  holding: boolean;
  from: number; // seconds since 1970
  to: number; // when it was seen last
}

const kKept = 1000;
// Snapshots round and travel: one that begins this close to a known one is the same.
const kSlack = 1.5;

// A hold as the server has seen it; |until| is null while it lasts.
export interface Hold {
  device: string;
  who: string;
  from: number;
  until: number | null;
}

// |known| with the server's record, which goes further back than this page.
export function withHolds(known: readonly Other[], holds: readonly Hold[], now: number): Other[] {
  const list = [...known];
  for (const { device, who, from, until } of holds) {
    const to = until ?? now;
    const at = list.findIndex((each) => each.holding && each.device === device && each.who === who && Math.abs(each.from - from) < kSlack);
    if (at < 0) list.push({ device, who, holding: true, from, to });
    else list[at] = { ...list[at], from: Math.min(from, list[at].from), to: Math.max(to, list[at].to) };
  }
  return list.sort((a, b) => a.from - b.from).slice(-kKept);
}

// |known| with the users of |devices| from other processes, who are there at |now|.
export function withOthers(known: readonly Other[], devices: readonly Device[], now: number): Other[] {
  const list = [...known];
  for (const { id, status } of devices) {
    for (const user of status?.users ?? []) {
      if (user.here) continue;
      const from = now - user.seconds;
      const at = list.findIndex((each) => each.device === id && each.who === user.who && each.holding === user.holding && Math.abs(each.from - from) < kSlack);
      if (at < 0) list.push({ device: id, who: user.who, holding: user.holding, from, to: now });
      else list[at] = { ...list[at], to: now };
    }
  }
  return list.slice(-kKept);
}
