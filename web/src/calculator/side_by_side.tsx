// Several devices, one line each: which was faster, which was closer.
import { formatError, formatSeconds, formatValue } from '../numbers';
import { runs } from './runs';

export function SideBySide() {
  const done = runs.value.filter((run) => run.result);
  if (runs.value.length < 2 || done.length < 2) return null;
  const fastest = Math.min(...done.map((run) => run.result!.seconds));
  return (
    <section class="card stack tight" aria-labelledby="side-title">
      <h2 id="side-title">Side by side</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Devices side by side">
        <table>
          <thead>
            <tr>
              <th scope="col">Device</th>
              <th scope="col" class="number">First value</th>
              <th scope="col" class="number">Error, ULP</th>
              <th scope="col" class="number">Computing</th>
              <th scope="col" class="number">In all</th>
              <th scope="col" class="number">Against the fastest</th>
            </tr>
          </thead>
          <tbody>
            {done.map(({ result }) => {
              const first = result!.results[0];
              const computing = result!.timeline.filter((span) => span.stage === 'computing').reduce((sum, span) => sum + span.seconds, 0);
              return (
                <tr>
                  <th scope="row" class="mono">{result!.device.id}</th>
                  <td class="number">{formatValue(first.value, first.dtype)}</td>
                  <td class="number">{first.comparison && !first.comparison.skipped ? formatError(first.comparison.max_ulp) : '–'}</td>
                  <td class="number">{formatSeconds(computing)}</td>
                  <td class="number">{formatSeconds(result!.seconds)}</td>
                  <td class="number">{`${(result!.seconds / fastest).toFixed(1)} ×`}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
