// What devices did for a model, put together from their events; pure functions.
import type { DeviceEvent, Span } from '../api';

export interface Work {
  device: string;
  runs: number;
  begin: number; // seconds since 1970, of the first stage
  end: number;
  sums: Span[]; // by stage, in the order in which they first occur
  bars: Span[]; // every stage of every run; start_seconds since |begin|
}

// Of the runs of |program| among |events|, by device.
export function workOf(events: readonly DeviceEvent[], program: string): Work[] {
  const works = new Map<string, Work>();
  for (const event of events) {
    if (event.kind !== 'ran' || event.program !== program) continue;
    const length = event.timeline.reduce((end, span) => Math.max(end, span.start_seconds + span.seconds), event.seconds);
    const from = event.time - length;
    const work = works.get(event.device) ?? { device: event.device, runs: 0, begin: from, end: event.time, sums: [], bars: [] };
    works.set(event.device, work);
    work.runs++;
    work.end = Math.max(work.end, event.time);
    for (const span of event.timeline) {
      if (span.seconds <= 0) continue;
      work.bars.push({ ...span, start_seconds: from - work.begin + span.start_seconds });
      const sum = work.sums.find(({ stage }) => stage === span.stage);
      if (sum) sum.seconds += span.seconds;
      else work.sums.push({ ...span });
    }
  }
  return [...works.values()];
}
