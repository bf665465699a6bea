// A matrix as colours.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Slice } from '../api';
import { formatValue } from '../numbers';
import { colour, paletteVersion } from '../theme';

// A diverging scale if values have both signs, a sequential one otherwise; NaN and infinities stand out.
export function HeatMap({ slice, rank, dtype }: { slice: Slice; rank: number; dtype: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [pointed, setPointed] = useState<[number, number]>([0, 0]);
  const palette = paletteVersion.value;
  const values = slice.values.map((row) => row.map(Number));
  const finite = values.flat().filter(Number.isFinite);
  const low = finite.reduce((least, value) => Math.min(least, value), Infinity);
  const high = finite.reduce((most, value) => Math.max(most, value), -Infinity);
  useEffect(() => {
    if (canvas.current) draw(canvas.current, values, low, high);
  }, [slice, palette]);
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
  const place = `[${[...slice.at, ...(rank > 1 ? [slice.rows[r]] : []), ...(rank > 0 ? [slice.columns[c]] : [])].join(', ')}]`;
  const value = formatValue(slice.values[r][c], dtype);
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
          <span class="number">{formatValue(low, dtype)}</span>
          <span class={`ramp ${low < 0 && high > 0 ? 'two' : ''}`} />
          <span class="number">{formatValue(high, dtype)}</span>
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
