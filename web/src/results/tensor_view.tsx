// A result as a table or a heat map. Of a large or deep tensor it shows a sample, which is called one, or any window of it.
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, type Result, type Slice } from '../api';
import { formatValue, shapeText } from '../numbers';
import { announce } from '../parts/announcer';
import { problemFrom } from '../parts/problem';
import { HeatMap } from './heat_map';
import { Samples } from './views';

const kRows = 12;
const kColumns = 8;
const kSide = 64; // the most that the server sends at once

interface Window {
  row: number;
  column: number;
}

interface Props {
  result: Result;
  index: number; // of the result
  download: string | null;
  view: 'table' | 'heat';
  prefix: string;
}

export function TensorView({ result, index, download, view, prefix }: Props) {
  const { shape, grid } = result;
  const rank = shape.length;
  const height = rank > 1 ? shape[rank - 2] : 1;
  const width = rank > 0 ? shape[rank - 1] : 1;
  const [shown, setShown] = useState<Slice | null>(grid);
  const [window, setWindow] = useState<Window | undefined>(undefined); // undefined: the sample
  const [at, setAt] = useState<number[]>(shape.slice(0, -2).map(() => 0));
  const [all, setAll] = useState(false);
  const [problem, setProblem] = useState('');
  const latest = useRef(0);
  const [rows, columns] = view === 'heat' || all ? [kSide, kSide] : [kRows, kColumns];
  const complete = grid !== null && grid.rows.length === height && grid.columns.length === width;
  const isSample = !window && !complete;

  useEffect(() => {
    const first = !window && at.every((each) => each === 0);
    if (first) return setShown(grid);
    if (!download) return;
    const query = new URLSearchParams({ index: String(index), at: at.join(',') });
    if (window) for (const [name, value] of Object.entries({ row: window.row, column: window.column, rows, columns })) query.set(name, String(value));
    const mine = ++latest.current;
    get<{ slice: Slice }>(`${download}/values?${query}`).then(
      ({ slice }) => {
        if (mine !== latest.current) return;
        setShown(slice);
        setProblem('');
        announce(placeOf(slice, window === undefined && !complete, height, width));
      },
      (error: unknown) => {
        if (mine !== latest.current) return;
        const { status, detail } = problemFrom(error);
        setProblem(status === 404 ? 'The server keeps results for 10 minutes, and these values are gone. Press Calculate to have them again.' : detail);
      },
    );
  }, [window, at, rows, columns, view]);

  if (!shown || result.elements === 0) return <Samples result={result} />;
  const browsable = download !== null && (!complete || rank > 2);
  const cut = view === 'table' && !window ? { ...shown, rows: shown.rows.slice(0, rows), columns: shown.columns.slice(0, columns) } : shown;
  const more = !window && view === 'table' && (shown.rows.length > kRows || shown.columns.length > kColumns);
  return (
    <div class="stack tight">
      {browsable && <Controls {...{ shape, height, width, complete, window, at, rows, columns, prefix, setAt }} onWindow={setWindow} />}
      {problem && <p class="wrong" role="alert">{problem}</p>}
      {view === 'heat' ? <HeatMap slice={shown} rank={rank} dtype={result.dtype} /> : <Table slice={cut} dtype={result.dtype} />}
      <p class="row small soft slice-note">
        <span>
          {shapeText(shape)} {result.dtype}. {placeOf(cut, isSample, height, width)}
          {!download && !complete && ' The result is too large to be kept, so other parts cannot be shown.'}
        </span>
        {more && (
          <button type="button" class="plain small" onClick={() => setAll(!all)}>
            {all ? 'Show fewer' : `Show ${shown.rows.length} × ${shown.columns.length}`}
          </button>
        )}
      </p>
    </div>
  );
}

function placeOf(slice: Slice, isSample: boolean, height: number, width: number): string {
  const where = slice.at.length > 0 ? ` at index ${slice.at.join(', ')}` : '';
  if (isSample) return `A sample${where}: ${slice.rows.length} of ${height} rows and ${slice.columns.length} of ${width} columns, evenly spread; the values are exact.`;
  const part = (name: string, list: number[], extent: number) =>
    list.length === extent ? '' : list.length === 1 ? `${name} ${list[0]} of ${extent}` : `${name}s ${list[0]} to ${list.at(-1)} of ${extent}`;
  const parts = [part('row', slice.rows, height), part('column', slice.columns, width)].filter(Boolean).join(', ');
  const text = `${parts}${where}`.trim();
  return text === '' ? '' : `${text[0].toUpperCase()}${text.slice(1)}.`;
}

interface ControlProps {
  shape: number[];
  height: number;
  width: number;
  complete: boolean;
  window: Window | undefined;
  at: number[];
  rows: number;
  columns: number;
  prefix: string;
  setAt: (at: number[]) => void;
  onWindow: (window: Window | undefined) => void;
}

function Controls({ shape, height, width, complete, window, at, rows, columns, prefix, setAt, onWindow }: ControlProps) {
  const inside = (value: number, extent: number) => Math.max(0, Math.min(extent - 1, Number.isFinite(value) ? Math.floor(value) : 0));
  const go = (row: number, column: number) => onWindow({ row: inside(row, height), column: inside(column, width) });
  const { row, column } = window ?? { row: 0, column: 0 };
  return (
    <div class="row slice-controls" role="group" aria-label="Part of the tensor">
      {at.map((value, axis) => (
        <Field id={`${prefix}-axis-${axis}`} label={`Axis ${axis}, 0 to ${shape[axis] - 1}`} value={value} onChange={(next) => setAt(at.map((each, i) => (i === axis ? inside(next, shape[axis]) : each)))} />
      ))}
      {!complete && (
        <>
          {height > 1 && <Field id={`${prefix}-row`} label="First row" value={window ? row : ''} placeholder="sample" onChange={(next) => go(next, column)} />}
          <Field id={`${prefix}-column`} label="First column" value={window ? column : ''} placeholder="sample" onChange={(next) => go(row, next)} />
          <span class="row pager">
            {height > 1 && <button type="button" aria-label="Rows above" disabled={!window || row === 0} onClick={() => go(row - rows, column)}>↑</button>}
            {height > 1 && <button type="button" aria-label="Rows below" disabled={window !== undefined && row + rows >= height} onClick={() => go(window ? row + rows : 0, column)}>↓</button>}
            <button type="button" aria-label="Columns to the left" disabled={!window || column === 0} onClick={() => go(row, column - columns)}>←</button>
            <button type="button" aria-label="Columns to the right" disabled={window !== undefined && column + columns >= width} onClick={() => go(row, window ? column + columns : 0)}>→</button>
            <button type="button" aria-pressed={!window} onClick={() => onWindow(undefined)}>Sample</button>
          </span>
        </>
      )}
    </div>
  );
}

const Field = ({ id, label, value, placeholder, onChange }: { id: string; label: string; value: number | ''; placeholder?: string; onChange: (value: number) => void }) => (
  <span class="field slice-field">
    <label for={id}>{label}</label>
    <input id={id} class="number" type="number" min={0} value={value} placeholder={placeholder} onInput={(event) => event.currentTarget.value !== '' && onChange(Number(event.currentTarget.value))} />
  </span>
);

const Table = ({ slice, dtype }: { slice: Slice; dtype: string }) => (
  <div class="scroll grid-table" tabIndex={0} role="region" aria-label="Values of the result">
    <table>
      <thead>
        <tr>
          <th scope="col">
            <span class="hidden">Row</span>
          </th>
          {slice.columns.map((column) => (
            <th scope="col" class="number">{column}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {slice.rows.map((row, r) => (
          <tr>
            <th scope="row" class="number">{row}</th>
            {slice.values[r].slice(0, slice.columns.length).map((value) => (
              <td class="number">{formatValue(value, dtype)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);
