// Converts device events to intervals to draw; pure functions.
import type { DeviceEvent } from '../api';
import type { Other } from '../device_history';

export type BarKind = 'open' | 'opening' | 'closing' | 'held' | 'elsewhere' | 'waited' | 'ran' | 'lost' | 'failed';
export interface Bar {
  kind: BarKind;
  from: number; // seconds since 1970
  to: number;
  text: string;
}
export interface Lane {
  device: string;
  bars: Bar[];
}

// |others| are holds and waits of other processes; |now| ends intervals that are still open.
export function lanes(events: readonly DeviceEvent[], devices: readonly string[], now: number, others: readonly Other[] = []): Lane[] {
  const byDevice = new Map<string, Bar[]>(devices.map((device) => [device, []]));
  const openSince = new Map<string, number>();
  const heldSince = new Map<string, { since: number; who: string }[]>();
  const bars = (device: string) => byDevice.get(device) ?? byDevice.set(device, []).get(device)!;
  for (const event of events) {
    const list = bars(event.device);
    const { time, seconds, device } = event;
    const endOpen = () => {
      const since = openSince.get(device);
      if (since !== undefined) list.push({ kind: 'open', from: since, to: time, text: 'open' });
      openSince.delete(device);
    };
    switch (event.kind) {
      case 'opened':
        list.push({ kind: 'opening', from: time - seconds, to: time, text: 'opening' });
        openSince.set(device, time);
        break;
      case 'closed':
      case 'close_failed':
        endOpen();
        list.push({ kind: 'closing', from: time - seconds, to: time, text: event.kind === 'closed' ? 'closing' : withReason('closing failed', event) });
        break;
      case 'lost':
        endOpen();
        list.push({ kind: 'lost', from: time, to: time, text: withReason('lost', event) });
        break;
      case 'open_failed':
        list.push({ kind: 'failed', from: time - seconds, to: time, text: withReason('opening failed', event) });
        break;
      case 'granted':
        heldSince.set(device, [...(heldSince.get(device) ?? []), { since: time, who: event.program ?? '' }]);
        break;
      case 'released':
      case 'yielded': {
        const grants = heldSince.get(device) ?? [];
        const grant = grants.shift();
        list.push({ kind: 'held', from: grant?.since ?? time - seconds, to: time, text: `held by ${event.program || grant?.who || 'this server'}` });
        break;
      }
      case 'ran':
        ranBars(event, list);
        break;
    }
  }
  for (const [device, since] of openSince) bars(device).push({ kind: 'open', from: since, to: now, text: 'open' });
  for (const [device, grants] of heldSince) {
    for (const grant of grants) bars(device).push({ kind: 'held', from: grant.since, to: now, text: `held by ${grant.who || 'this server'}` });
  }
  for (const { device, who, holding, from, to } of others) {
    bars(device).push({ kind: holding ? 'elsewhere' : 'waited', from, to, text: holding ? `held by ${who}` : `${who} waited` });
  }
  return [...byDevice].map(([device, list]) => ({ device, bars: list }));
}

const withReason = (what: string, event: DeviceEvent) => (event.message ? `${what}: ${event.message}` : what);

function ranBars(event: DeviceEvent, list: Bar[]) {
  const length = event.timeline.reduce((end, span) => Math.max(end, span.start_seconds + span.seconds), event.seconds);
  const begin = event.time - length;
  const program = event.program || 'a run';
  for (const span of event.timeline) {
    const from = begin + span.start_seconds;
    if (span.stage === 'queued') list.push({ kind: 'waited', from, to: from + span.seconds, text: `${program} waited` });
    if (span.stage === 'computing') list.push({ kind: 'ran', from, to: from + span.seconds, text: `${program} computed` });
  }
  if (!event.timeline.some((span) => span.stage === 'computing')) {
    list.push({ kind: 'ran', from: event.time - event.seconds, to: event.time, text: program });
  }
}

// Round distances for the axis, so that about |count| of them fit.
export function tickStep(length: number, count: number): number {
  const steps = [1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];
  return steps.find((step) => length / step <= count) ?? 86400;
}

export function tickText(time: number, step: number): string {
  const date = new Date(time * 1000);
  const two = (value: number) => String(value).padStart(2, '0');
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (step >= 60) return clock;
  const seconds = two(date.getSeconds());
  if (step >= 1) return `${clock}:${seconds}`;
  const digits = Math.min(4, Math.ceil(-Math.log10(step)));
  return `${seconds}${(time % 1).toFixed(digits).slice(1)}`;
}
