// When the device worked for an answer: each run as a bar, and the sum of each stage.
import type { DeviceEvent } from '../api';
import { formatSeconds } from '../numbers';
import { stageName } from '../results/stages';
import { workOf } from './work';
import '../results/results.css';

export function DeviceWork({ events, model }: { events: readonly DeviceEvent[]; model: string }) {
  const works = workOf(events, `model ${model}`);
  if (works.length === 0) return null;
  return (
    <section class="stack tight" aria-label="Device timeline">
      {works.map(({ device, runs, begin, end, sums, bars }) => {
        const length = Math.max(end - begin, 1e-9);
        return (
          <figure class="device-work" key={device}>
            <p class="small row between">
              <span>
                <span class="mono">{device}</span> {runs === 1 ? '1 run' : `${runs} runs`} in {formatSeconds(length)}
              </span>
            </p>
            <div class="work-lane" role="img" aria-label={`${device}: ${runs} runs in ${formatSeconds(length)}; ${sums.map((sum) => `${stageName(sum.stage)} ${formatSeconds(sum.seconds)}`).join(', ')}`}>
              {bars.map((bar) => (
                <span class={`stage-${bar.stage}`} style={{ left: `${(100 * bar.start_seconds) / length}%`, width: `${(100 * bar.seconds) / length}%` }} />
              ))}
            </div>
            <figcaption class="legend small">
              {sums.map((sum) => (
                <span>
                  <span class={`dot stage-${sum.stage}`} />
                  {stageName(sum.stage)} <span class="number">{formatSeconds(sum.seconds)}</span>
                </span>
              ))}
            </figcaption>
          </figure>
        );
      })}
      <p class="small soft">Every run of this model while it answered; requests that advance together share them.</p>
    </section>
  );
}
