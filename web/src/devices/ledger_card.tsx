// The ledger: what each device cost, day by day.
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { get, type Ledger } from '../api';
import { deviceEvents, reconnects } from '../connection';
import { formatMoney, formatSeconds } from '../numbers';
import { sentence } from '../parts/problem';
import { colour, paletteVersion } from '../theme';

type Measure = 'cost_dollars' | 'held_seconds' | 'compute_seconds';
const kMeasures: [Measure, string][] = [['cost_dollars', 'Cost'], ['held_seconds', 'Time held'], ['compute_seconds', 'Time computing']];
const kPaints = ['stage-computing', 'stage-queued', 'stage-compiling', 'stage-opening', 'stage-downloading', 'stage-closing'];
const text = (measure: Measure, value: number) => (measure === 'cost_dollars' ? formatMoney(value) : formatSeconds(value));

export function LedgerCard() {
  const [ledger, setLedger] = useState<Ledger | undefined>(undefined);
  const [chosen, setChosen] = useState<Measure | undefined>(undefined);
  const last = deviceEvents.value.at(-1)?.id ?? 0;
  // New work changes the ledger; it is read at most every two seconds.
  const pending = useRef(0);
  useEffect(() => {
    if (pending.current) return;
    const read = () => {
      pending.current = 0;
      get<Ledger>('/api/ledger?limit=10').then(setLedger, () => undefined);
    };
    pending.current = window.setTimeout(read, ledger ? 2000 : 0);
  }, [last, reconnects.value]);
  useEffect(() => () => clearTimeout(pending.current), []);
  // If nothing had a cost, show time instead.
  const measure = chosen ?? (ledger?.days.some((row) => (row.cost_dollars ?? 0) > 0) ? 'cost_dollars' : 'held_seconds');
  return (
    <section class="card stack" aria-labelledby="ledger-title">
      <div class="row between">
        <h2 id="ledger-title">Ledger</h2>
        {ledger?.enabled && (
          <select aria-label="What the chart shows" class="measure" value={measure} onChange={(event) => setChosen(event.currentTarget.value as Measure)}>
            {kMeasures.map(([id, name]) => (
              <option value={id}>{name}</option>
            ))}
          </select>
        )}
      </div>
      {!ledger ? (
        <p class="soft">Loading …</p>
      ) : !ledger.enabled ? (
        <p class="soft">{ledger.reason ? sentence(ledger.reason) : 'This server has no ledger.'}</p>
      ) : (
        <>
          <Chart ledger={ledger} measure={measure} />
          <Totals ledger={ledger} />
        </>
      )}
    </section>
  );
}

function Totals({ ledger }: { ledger: Ledger }) {
  if (ledger.totals.length === 0) return <p class="small soft">No device has been leased yet.</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Ledger totals">
      <table>
        <thead>
          <tr>
            <th scope="col">Device</th>
            <th scope="col" class="number">Leases</th>
            <th scope="col" class="number">Held</th>
            <th scope="col" class="number">Computing</th>
            <th scope="col" class="number">Cost</th>
          </tr>
        </thead>
        <tbody>
          {ledger.totals.map((total) => (
            <tr>
              <th scope="row" class="mono">{total.device}</th>
              <td class="number">{total.leases}</td>
              <td class="number">{formatSeconds(total.held_seconds)}</td>
              <td class="number">{formatSeconds(total.compute_seconds)}</td>
              <td class="number">{total.cost_dollars === null || total.cost_dollars === 0 ? '–' : formatMoney(total.cost_dollars)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// A server may return one total for all devices.
const deviceOf = (row: Ledger['days'][number]) => row.device ?? 'all devices';

function Chart({ ledger, measure }: { ledger: Ledger; measure: Measure }) {
  const holder = useRef<HTMLDivElement>(null);
  const palette = paletteVersion.value;
  const days = [...new Set(ledger.days.map((row) => row.day))].sort();
  const names = [...new Set(ledger.days.map(deviceOf))].sort();
  const series = names.map((name) => days.map((day) => ledger.days.find((row) => row.day === day && deviceOf(row) === name)?.[measure] ?? 0));
  useEffect(() => {
    if (!holder.current || days.length === 0) return undefined;
    // Stacked: each series drawn up to the sum of itself and those below, the largest first.
    const sums = series.map((_, i) => days.map((__, d) => series.slice(0, i + 1).reduce((sum, values) => sum + values[d], 0)));
    const order = names.map((_, i) => names.length - 1 - i);
    const [soft, line] = [colour('soft'), colour('line')];
    const axis = { stroke: soft, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const times = days.map((day) => Date.parse(`${day}T00:00:00`) / 1000);
    const chart = new uPlot(
      {
        width: holder.current.clientWidth, height: 200, legend: { show: false }, cursor: { show: false },
        scales: { x: { time: true, range: [times[0] - 43200, times[times.length - 1] + 43200] }, y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
        axes: [{ ...axis, values: (_u, ticks) => ticks.map((tick) => new Date(tick * 1000).toLocaleDateString(undefined, { day: 'numeric', month: 'short' })), incrs: [86400, 604800, 2592000] }, { ...axis, size: 76, values: (_u, ticks) => ticks.map((tick) => text(measure, tick)) }],
        series: [{}, ...order.map((i) => ({ label: names[i], fill: colour(kPaints[i % kPaints.length]), stroke: 'transparent', points: { show: false }, paths: uPlot.paths.bars!({ size: [0.6, 48] }) }))],
      },
      [times, ...order.map((i) => sums[i])],
      holder.current,
    );
    const size = new ResizeObserver(() => holder.current && chart.setSize({ width: holder.current.clientWidth, height: 200 }));
    size.observe(holder.current);
    return () => (size.disconnect(), chart.destroy());
  }, [ledger, measure, palette]);
  if (days.length === 0) return <p class="small soft">No device has been leased yet.</p>;
  const summary = names.map((name, i) => `${name} ${text(measure, series[i].reduce((sum, value) => sum + value, 0))}`).join(', ');
  return (
    <figure>
      <div ref={holder} class="chart" role="img" aria-label={`By day, ${days.length} ${days.length === 1 ? 'day' : 'days'}: ${summary}`} />
      <figcaption class="legend small">
        {names.map((name, i) => (
          <span>
            <span class={`dot ${kPaints[i % kPaints.length]}`} />
            {name}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}
