// The live connection to the server: one event stream, reopened whenever it breaks, and its latest data.
import { computed, signal } from '@preact/signals';
import { type Device, type DeviceEvent, failures, lastContact, loginNeeded, parseJson } from './api';
import { type Hold, merged, type Other, withHolds, withOthers } from './device_history';

export type Link = 'connecting' | 'open' | 'lost' | 'ending';
export const link = signal<Link>('connecting');
export const devices = signal<Device[]>([]);
export const devicesKnown = signal(false);
export const server = signal<{ draining: boolean; requests_waiting: number; requests_running: number } | undefined>(undefined);
export const retryAt = signal(0);
// Grows each time the connection is reopened after a loss, because earlier data may belong to another server process.
export const reconnects = signal(0);

export const accelerators = computed(() => devices.value.filter((device) => device.kind !== 'cpu'));

const kKeptEvents = 4096;
export const deviceEvents = signal<DeviceEvent[]>([]);
// When other processes held or waited for a device, as far as this page has seen it.
export const others = signal<Other[]>([]);
export const dropped = signal(0);

let source: EventSource | undefined;
const waiting: DeviceEvent[] = [];
let flushTimer = 0;
let attempts = 0;
let timer = 0;

export function connect() {
  if (loginNeeded.value) return;
  source?.close();
  clearTimeout(timer);
  const since = deviceEvents.value.at(-1)?.id;
  source = new EventSource(since === undefined ? '/api/events' : `/api/events?since=${since}`);
  source.onopen = () => {
    if (link.value === 'lost' || link.value === 'ending') reconnects.value++;
    link.value = 'open';
    attempts = 0;
    lastContact.value = Date.now();
  };
  source.onerror = () => tryLater();
  source.addEventListener('snapshot', (event) => {
    const snapshot = parseJson((event as MessageEvent).data) as { devices: Device[]; server: typeof server.value };
    devices.value = snapshot.devices;
    others.value = withOthers(others.value, snapshot.devices, Date.now() / 1000);
    devicesKnown.value = true;
    server.value = snapshot.server;
  });
  source.addEventListener('device', (event) => {
    // Thousands of events may arrive per second; they are drawn ten times a second.
    waiting.push(parseJson((event as MessageEvent).data) as DeviceEvent);
    if (!flushTimer) flushTimer = window.setTimeout(flush, 100);
  });
  source.addEventListener('lag', (event) => (dropped.value += (parseJson((event as MessageEvent).data) as { dropped: number }).dropped));
  source.addEventListener('shutdown', () => {
    link.value = 'ending';
    tryLater();
  });
}

function flush() {
  flushTimer = 0;
  addEvents(waiting.splice(0));
}

// Events arrive live and, for the time before the page was opened, from the server's record; both may have the same ones.
export function addEvents(list: DeviceEvent[]) {
  deviceEvents.value = merged(deviceEvents.value, list).slice(-kKeptEvents);
}

export function addHolds(list: Hold[]) {
  others.value = withHolds(others.value, list, Date.now() / 1000);
}

// EventSource gives up permanently on some errors, so we retry ourselves: after 1, 2, 4, 8 seconds, then every 8.
function tryLater() {
  source?.close();
  source = undefined;
  if (loginNeeded.value) return;
  if (link.value !== 'ending') link.value = 'lost';
  const seconds = Math.min(2 ** attempts++, 8);
  retryAt.value = Date.now() + seconds * 1000;
  clearTimeout(timer);
  timer = window.setTimeout(probe, seconds * 1000);
}

// A failed stream gives no reason, but an ordinary request does: the session may have expired.
export async function probe() {
  try {
    const response = await fetch('/api/session', { cache: 'no-store' });
    const session = (await response.json()) as { required: boolean; authenticated: boolean };
    if (session.required && !session.authenticated) {
      loginNeeded.value = true;
      return;
    }
    connect();
  } catch {
    failures.value++;
    tryLater();
  }
}

export function disconnect() {
  source?.close();
  source = undefined;
  clearTimeout(timer);
}
