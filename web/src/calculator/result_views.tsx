// A result as a table, a heat map and a histogram, and its error against the reference.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Comparison, Result, Scalar } from '../api';
import { formatError, formatValue, shapeText } from '../numbers';
import { colour, paletteVersion } from '../theme';

export const numeric = (value: Scalar | null | undefined) => (value === null || value === undefined ? NaN : Number(value));

// At most 12 x 8 cells unless all are requested, so that the table stays readable. The server's sample determines the rows and columns.
export function TableView({ result }: { result: Result }) {
  const [all, setAll] = useState(false);
  const grid = result.grid;
  if (!grid || result.elements === 0) return <Samples result={result} />;
  const rows = all ? grid.rows.length : Math.min(grid.rows.length, 12);
  const columns = all ? grid.columns.length : Math.min(grid.columns.length, 8);
  const cut = rows < grid.rows.length || columns < grid.columns.length;
  const others = result.shape.length > 2 ? `, at index ${result.shape.slice(0, -2).map(() => 0).join(', ')} of the other axes` : '';
  return (
    <div class="stack tight">
      <div class="scroll grid-table" tabIndex={0} role="region" aria-label="Values of the result">
        <table>
          <thead>
            <tr>
              <th scope="col">
                <span class="hidden">Row</span>
              </th>
              {grid.columns.slice(0, columns).map((column) => (
                <th scope="col" class="number">{column}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {grid.values.slice(0, rows).map((row, r) => (
              <tr>
                <th scope="row" class="number">{grid.rows[r]}</th>
                {row.slice(0, columns).map((value) => (
                  <td class="number">{formatValue(value, result.dtype)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="row small soft">
        {shapeText(result.shape)} {result.dtype}
        {others}
        {(cut || all) && (grid.rows.length > 12 || grid.columns.length > 8) && (
          <button type="button" class="plain small" onClick={() => setAll(!all)}>
            {all ? 'Show fewer' : `Show ${grid.rows.length} × ${grid.columns.length}`}
          </button>
        )}
      </p>
    </div>
  );
}

const Samples = ({ result }: { result: Result }) => (
  <p class="number break">{result.elements === 0 ? 'The result has no elements.' : result.sample_values.map((value) => formatValue(value, result.dtype)).join(', ')}</p>
);

// A diverging scale if values have both signs, a sequential one otherwise; NaN and infinities stand out.
export function HeatMap({ result }: { result: Result }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [pointed, setPointed] = useState<[number, number]>([0, 0]);
  const grid = result.grid;
  const palette = paletteVersion.value;
  const values = grid?.values.map((row) => row.map(numeric)) ?? [];
  const finite = values.flat().filter(Number.isFinite);
  const low = finite.reduce((least, value) => Math.min(least, value), Infinity);
  const high = finite.reduce((most, value) => Math.max(most, value), -Infinity);
  useEffect(() => {
    if (canvas.current && grid) draw(canvas.current, values, low, high);
  }, [result, palette]);
  if (!grid || result.elements === 0) return <Samples result={result} />;
  const rows = values.length;
  const columns = values[0]?.length ?? 0;
  const point = (event: PointerEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const clamp = (value: number, limit: number) => Math.max(0, Math.min(limit - 1, Math.floor(value)));
    setPointed([clamp(((event.clientY - box.top) / box.height) * rows, rows), clamp(((event.clientX - box.left) / box.width) * columns, columns)]);
  };
  const key = (event: KeyboardEvent) => {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
    if (!down && !right) return;
    event.preventDefault();
    setPointed([(pointed[0] + down + rows) % rows, (pointed[1] + right + columns) % columns]);
  };
  const [r, c] = [Math.min(pointed[0], rows - 1), Math.min(pointed[1], columns - 1)];
  const place = result.shape.length > 1 ? `[${grid.rows[r]}, ${grid.columns[c]}]` : `[${grid.columns[c]}]`;
  const value = formatValue(grid.values[r][c], result.dtype);
  return (
    <div class="stack tight">
      <div
        class="heat" tabIndex={0} role="slider" aria-label="Heat map of the result; use the arrow keys to read single values" aria-orientation="horizontal"
        aria-valuemin={0} aria-valuemax={rows * columns - 1} aria-valuenow={r * columns + c} aria-valuetext={`${place} is ${value}`} onKeyDown={key}
      >
        <canvas ref={canvas} onPointerMove={point} style={{ aspectRatio: `${columns} / ${rows}` }} />
      </div>
      <p class="row small">
        <span class="number">
          {place} {value}
        </span>
        <span class="scale end">
          <span class="number">{formatValue(low, result.dtype)}</span>
          <span class={`ramp ${low < 0 && high > 0 ? 'two' : ''}`} />
          <span class="number">{formatValue(high, result.dtype)}</span>
        </span>
      </p>
    </div>
  );
}

function draw(canvas: HTMLCanvasElement, values: number[][], low: number, high: number) {
  const rows = values.length;
  const columns = values[0]?.length ?? 0;
  const scale = Math.max(1, Math.floor(512 / Math.max(rows, columns, 1)));
  canvas.width = columns * scale;
  canvas.height = rows * scale;
  const context = canvas.getContext('2d')!;
  const [from, to, negative, odd] = ['heat-low', 'heat-high', 'heat-negative', 'heat-odd'].map(colour);
  const both = low < 0 && high > 0;
  const reach = both ? Math.max(-low, high) : high - low || 1;
  values.forEach((row, r) =>
    row.forEach((value, c) => {
      if (Number.isFinite(value)) {
        const share = both ? Math.abs(value) / reach : (value - low) / reach;
        context.fillStyle = from;
        context.fillRect(c * scale, r * scale, scale, scale);
        context.globalAlpha = share;
        context.fillStyle = both && value < 0 ? negative : to;
        context.fillRect(c * scale, r * scale, scale, scale);
        context.globalAlpha = 1;
      } else {
        context.fillStyle = odd;
        context.fillRect(c * scale, r * scale, scale, scale);
      }
    }),
  );
}

export function HistogramView({ result }: { result: Result }) {
  const { histogram, statistics } = result;
  if (!histogram || !statistics) return <Samples result={result} />;
  const low = numeric(histogram.low);
  const high = numeric(histogram.high);
  const odd = statistics.nan + statistics.positive_infinity + statistics.negative_infinity;
  const step = (high - low) / histogram.counts.length;
  const labels = histogram.counts.map((_, i) => `${formatError(low + i * step)} to ${formatError(low + (i + 1) * step)}`);
  return (
    <div class="stack tight">
      <Bars counts={histogram.counts} labels={labels} name="Distribution of the values" />
      <p class="row between small soft number">
        <span>{formatValue(histogram.low, result.dtype)}</span>
        <span>{formatValue(histogram.high, result.dtype)}</span>
      </p>
      <dl class="facts small">
        <Fact name="Mean" value={formatError(statistics.mean)} />
        <Fact name="Deviation" value={formatError(statistics.deviation)} />
        <Fact name="Zeros" value={String(statistics.zero)} />
        <Fact name="NaN, infinite" value={odd === 0 ? 'none' : `${statistics.nan}, ${statistics.positive_infinity + statistics.negative_infinity}`} />
      </dl>
    </div>
  );
}

export function Bars({ counts, labels, name }: { counts: number[]; labels: string[]; name: string }) {
  const most = Math.max(...counts, 1);
  const width = 100 / counts.length;
  const largest = counts.indexOf(most);
  return (
    <svg class="bars" viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={`${name}: ${counts.length} bins, the largest has ${counts[largest] ?? 0} elements (${labels[largest] ?? ''})`}>
      {counts.map((count, i) => {
        const height = count === 0 ? 0 : Math.max(0.6, (count / most) * 40);
        return (
          <rect x={i * width + width * 0.06} y={40 - height} width={width * 0.88} height={height}>
            <title>{`${labels[i]}: ${count}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}

export const Fact = ({ name, value, title }: { name: string; value: string; title?: string }) => (
  <div title={title}>
    <dt>{name}</dt>
    <dd class="number">{value}</dd>
  </div>
);

export function ErrorView({ comparison, result }: { comparison: Comparison | null; result: Result }) {
  if (!comparison) return <p class="soft">The result was not compared with the reference.</p>;
  if (comparison.skipped) return <p class="soft">Not compared: {comparison.skipped}.</p>;
  const { edges, counts } = comparison.ulp_histogram;
  const labels = edges.map((edge, i) => (i + 1 < edges.length ? `${edge} to ${edges[i + 1]} ULP` : `${edge} ULP and more`));
  const odd = comparison.nan + comparison.reference_nan + comparison.infinity + comparison.reference_infinity > 0;
  return (
    <div class="stack tight">
      <dl class="facts small">
        <Fact name="Largest error" value={formatError(comparison.max_abs)} title="Absolute, over the whole tensor" />
        <Fact name="Relative" value={formatError(comparison.max_rel)} title="Relative, where the reference is not 0" />
        <Fact name="In ULP" value={formatError(comparison.max_ulp)} title={`Units in the last place of ${result.dtype}`} />
        <Fact name="Correlation" value={comparison.pcc === null ? '–' : formatPcc(comparison.pcc)} title="Pearson's correlation with the reference" />
        <Fact name="Beyond tolerance" value={`${comparison.mismatches} of ${result.elements}`} />
        {odd && <Fact name="NaN in result, reference" value={`${comparison.nan}, ${comparison.reference_nan}`} />}
        {odd && <Fact name="Infinities in result, reference" value={`${comparison.infinity}, ${comparison.reference_infinity}`} />}
      </dl>
      {comparison.worst_index && (
        <p class="small soft break">
          Worst at <span class="number">[{comparison.worst_index.join(', ')}]</span>: <span class="number">{formatValue(comparison.worst_value, result.dtype)}</span> here,{' '}
          <span class="number">{formatValue(comparison.worst_reference, 'float64')}</span> by the reference.
        </p>
      )}
      <Bars counts={counts} labels={labels} name="Errors in ULP" />
      <p class="row between small soft number edges">
        {edges.map((edge) => (
          <span>{edge}</span>
        ))}
      </p>
      <p class="small soft">
        Errors in ULP of {result.dtype}. An element matches within {comparison.tolerance.ulp} of them, or within{' '}
        {formatError(comparison.tolerance.relative_to_largest)} of the largest value.
      </p>
    </div>
  );
}

const formatPcc = (pcc: number) => (pcc === 1 ? '1' : pcc > 0.9999 ? `1 - ${formatError(1 - pcc)}` : pcc.toFixed(5));
