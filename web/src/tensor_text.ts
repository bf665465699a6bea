// Reads tensors from text: lists in brackets as Python, NumPy and PyTorch print them, and rows as spreadsheets and CSV files have them.
import { parseNumber } from './numbers';

export interface ParsedTensor {
  shape: number[];
  values: number[];
  texts: string[]; // as written: integers beyond 2^53 are exact only here
  note?: string; // what was left out
}

// Throws an Error with the position of the problem.
export function parseTensor(text: string): ParsedTensor {
  const bare = unwrapped(text.trim());
  if (bare === '') throw new Error('no values are given');
  return bare.startsWith('[') || bare.startsWith('(') ? parseNested(bare) : parseRows(bare);
}

// tensor([[1., 2.]], device='cuda:0'), np.array([1, 2], dtype=float32): the call around the list says nothing about the values.
function unwrapped(text: string): string {
  const call = /^(?:[A-Za-z_]\w*\.)*(?:tensor|array|asarray|Tensor|DeviceArray|matrix)\s*\(/.exec(text);
  if (!call) return text;
  const inner = text.slice(call[0].length);
  const named = /,\s*(?:dtype|device|requires_grad|grad_fn|size|shape)\s*=[^[\]]*\)\s*$/.exec(inner);
  return (named ? inner.slice(0, named.index) : inner.replace(/\)\s*;?\s*$/, '')).trim();
}

const abbreviated = (cell: string) => /^(\.\.\.|…)$/.test(cell);
const kAbbreviated = 'the text is abbreviated with "..."; print the whole tensor and paste again';

interface Token {
  text: string;
  at: number;
}

function parseNested(source: string): ParsedTensor {
  const tokens: Token[] = [...source.matchAll(/[[\]()]|[^\s,[\]()]+|,/g)].map((match) => ({ text: match[0], at: match.index! }));
  const values: number[] = [];
  const texts: string[] = [];
  let next = 0;
  const leaf = ({ text, at }: Token): number[] => {
    if (abbreviated(text)) throw new Error(kAbbreviated);
    const value = parseNumber(text);
    if (value === undefined) throw new Error(`character ${at + 1}: '${text.slice(0, 20)}' is not a number`);
    values.push(value);
    texts.push(text);
    next++;
    return [];
  };
  // The shape of the list that begins here.
  const list = (depth: number): number[] => {
    if (depth > 8) throw new Error('lists are nested more than 8 deep');
    next++;
    let inner: number[] | undefined;
    let count = 0;
    for (let token = tokens[next]; token?.text !== ']' && token?.text !== ')'; token = tokens[next]) {
      if (!token) throw new Error(`character ${source.length}: a bracket is not closed`);
      if (token.text === ',') {
        next++;
        continue;
      }
      const shape = token.text === '[' || token.text === '(' ? list(depth + 1) : leaf(token);
      if (inner && inner.join() !== shape.join()) throw new Error('all lists of one level must have the same length');
      inner = shape;
      count++;
    }
    next++;
    return [count, ...(inner ?? [])];
  };
  const shape = list(1);
  if (next < tokens.length) throw new Error(`character ${tokens[next].at + 1}: unexpected text after the list`);
  return { shape, values, texts };
}

// "1;2;3" has its cells apart by semicolons, "1 2; 3 4" its rows.
function cellsOf(text: string): string[][] {
  const lines = text.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== '');
  const semicolons = lines.some((line) => line.replace(/;\s*$/, '').includes(';'));
  const byRows = semicolons && lines.length === 1 && /[\d.]\s*[ ,\t]\s*[-+\d.].*;/.test(lines[0]);
  if (byRows) return lines[0].split(';').map((row) => split(row, /[,\t ]+/)).filter((row) => row.length > 0);
  if (!semicolons) return lines.map((line) => split(line.replace(/;\s*$/, ''), /[,\t ]+/));
  // With semicolons between cells a comma is a decimal comma.
  return lines.map((line) => split(line.replace(/;\s*$/, ''), /\s*;\s*/).map((cell) => (/^[-+]?\d*,\d+([eE][-+]?\d+)?$/.test(cell) ? cell.replace(',', '.') : cell)));
}

const split = (row: string, between: RegExp) => row.trim().split(between).filter((cell) => cell !== '').map((cell) => cell.replace(/^"(.*)"$/, '$1'));

function parseRows(text: string): ParsedTensor {
  let rows = cellsOf(text);
  const heads = rows.length > 1 && rows[0].every((cell) => parseNumber(cell) === undefined && !abbreviated(cell));
  if (heads) rows = rows.slice(1);
  const skipped = heads ? 1 : 0;
  const values = rows.flatMap((row, r) =>
    row.map((cell, c) => {
      if (abbreviated(cell)) throw new Error(kAbbreviated);
      const value = parseNumber(cell);
      if (value === undefined) throw new Error(`row ${r + 1 + skipped}, value ${c + 1}: '${cell.slice(0, 20)}' is not a number`);
      return value;
    }),
  );
  const width = rows[0].length;
  const ragged = rows.findIndex((row) => row.length !== width);
  if (ragged >= 0) throw new Error(`row ${ragged + 1 + skipped} has ${rows[ragged].length} values, but row ${1 + skipped} has ${width}`);
  return { shape: rows.length === 1 ? [width] : [rows.length, width], values, texts: rows.flat(), note: heads ? 'the first row, which has no numbers, is left out' : undefined };
}
