// Compares several devices, one row each, by time and error.
import { formatError, formatSeconds, formatValue } from '../numbers';
import { runs } from './runs';

export function SideBySide() {
  const done = runs.value.filter((run) => run.result);
  if (runs.value.length < 2 || done.length < 2) return null;
  const fastest = Math.min(...done.map((run) => run.result!.seconds));
  return (
    <section class="card stack tight" aria-labelledby="side-title">
      <h2 id="side-title">Comparison</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Comparison of devices">
        <table>
          <thead>
            <tr>
              <th scope="col">Device</th>
              <th scope="col" class="number">First value</th>
              <th scope="col" class="number">Error, ULP</th>
              <th scope="col" class="number">Computing</th>
              <th scope="col" class="number">Total</th>
              <th scope="col" class="number">Relative to the fastest</th>
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
