// The stages of a run: its current stage and position in the queue while it runs; afterwards, where the time went.
import { useEffect, useState } from 'preact/hooks';
import type { Span } from '../api';
import { formatSeconds } from '../numbers';
import { isActive, placeText, type Run } from './runs';

const kOrder = ['queued', 'opening', 'compiling', 'uploading', 'computing', 'downloading'];
const kNames: Record<string, string> = {
  waiting: 'Waiting for a server thread', queued: 'Queued', opening: 'Opening', compiling: 'Compiling', uploading: 'Uploading', computing: 'Computing',
  comparing: 'Comparing', downloading: 'Fetching', closing: 'Closing', other: 'Other',
};
export const stageName = (stage: string) => kNames[stage] ?? stage;

export function LiveStages({ run }: { run: Run }) {
  const [now, setNow] = useState(performance.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 100);
    return () => clearInterval(timer);
  }, []);
  const current = run.stages.at(-1);
  const seen = new Set(run.stages.map(({ stage }) => stage));
  const at = current ? kOrder.indexOf(current.stage) : -1;
  return (
    <div class="stack tight">
      <ol class="stages" aria-label="Stages">
        {kOrder.map((stage, i) => {
          const state = stage === current?.stage && isActive(run) ? 'now' : seen.has(stage) || i < at ? 'done' : 'ahead';
          return (
            <li class={state} aria-current={state === 'now' ? 'step' : undefined}>
              <span class={`dot stage-${stage}`} />
              {kNames[stage]}
            </li>
          );
        })}
      </ol>
      <p class="row">
        <span class="number">{formatSeconds(Math.max(0, now - run.begun) / 1000)}</span>
        <span>
          {!current || run.status === 'sending'
            ? 'Sending the request'
            : current.stage === 'queued' && run.progress
              ? placeText(run.progress)
              : `${stageName(current.stage)}${run.progress?.device ? ` on ${run.progress.device}` : ''}`}
        </span>
      </p>
      {current?.stage === 'queued' && run.progress?.holder && <p class="small soft break">Held by {run.progress.holder}.</p>}
    </div>
  );
}

export function TimeBar({ timeline, seconds }: { timeline: Span[]; seconds: number }) {
  const measured = timeline.filter((span) => span.seconds > 0);
  // What lies between the stages: choosing a device, and handing over.
  const rest = seconds - measured.reduce((sum, span) => sum + span.seconds, 0);
  const spans = rest > 0 ? [...measured, { stage: 'other', seconds: rest }] : measured;
  const total = spans.reduce((sum, span) => sum + span.seconds, 0) || 1;
  return (
    <figure class="timebar">
      <div class="bar" role="img" aria-label={`Time by stage: ${spans.map((span) => `${stageName(span.stage)} ${formatSeconds(span.seconds)}`).join(', ')}`}>
        {spans.map((span) => (
          <span class={`stage-${span.stage}`} style={{ flexGrow: Math.max(span.seconds / total, 0.004) }} />
        ))}
      </div>
      <figcaption class="legend small">
        {spans.map((span) => (
          <span>
            <span class={`dot stage-${span.stage}`} />
            {stageName(span.stage)} <span class="number">{formatSeconds(span.seconds)}</span>
          </span>
        ))}
        <span class="soft">
          total <span class="number">{formatSeconds(seconds)}</span>
        </span>
      </figcaption>
    </figure>
  );
}
