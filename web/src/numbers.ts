// Formatting and parsing of numbers.

// The shortest text that represents this number in the precision of its dtype.
export function formatValue(value: number | string | boolean | null | undefined, dtype = 'float32'): string {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return value ? 'true' : 'false';
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
  if (Object.is(value, -0)) return '-0';
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value);
  const digits = kDigits[dtype] ?? 8;
  const magnitude = Math.abs(value);
  const text = magnitude >= 1e-4 && magnitude < 1e9 ? value.toPrecision(digits) : value.toExponential(digits - 1);
  return text.replace(/(\.\d*?)0+(e|$)/, '$1$2').replace(/\.(e|$)/, '$1');
}

const kDigits: Record<string, number> = { float16: 5, bfloat16: 4, bfloat8_b: 4, bfloat4_b: 3, float32: 8, float64: 16 };

// A figure for a table of errors: three digits are enough.
export function formatError(value: number | string | boolean | null | undefined): string {
  if (value === null || value === undefined) return '–';
  if (typeof value !== 'number') return String(value);
  if (value === 0) return '0';
  if (!Number.isFinite(value)) return formatValue(value);
  const magnitude = Math.abs(value);
  if (Number.isInteger(value) && magnitude < 1e6) return String(value);
  return magnitude >= 1e-3 && magnitude < 1e4 ? String(Number(value.toPrecision(3))) : value.toExponential(2);
}

// Also accepts the strings that replace numbers JSON lacks.
export function formatSeconds(given: number | string | null | undefined): string {
  const seconds = given === null || given === undefined ? NaN : Number(given);
  if (Number.isNaN(seconds) || seconds < 0) return '–';
  if (seconds === Infinity) return 'unlimited';
  if (seconds === 0) return '0 s';
  if (seconds < 1e-6) return `${three(seconds * 1e9)} ns`;
  if (seconds < 1e-3) return `${three(seconds * 1e6)} µs`;
  if (seconds < 1) return `${three(seconds * 1e3)} ms`;
  if (seconds < 60) return `${three(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

function three(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function formatBytes(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit++;
  }
  return `${unit === 0 ? bytes : three(bytes)} ${units[unit]}`;
}

export function formatShare(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return '–';
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}

export function formatMoney(dollars: number): string {
  return dollars === 0 ? '$0' : dollars < 0.01 ? `$${dollars.toExponential(1)}` : `$${dollars.toFixed(2)}`;
}

export function formatAgo(seconds: number): string {
  if (seconds < 5) return 'just now';
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

// "2, 3, 4", "2x3x4", "[2, 3]" or "" (a scalar). Undefined for anything else.
export function parseShape(text: string): number[] | undefined {
  const bare = text.trim().replace(/^[[(]/, '').replace(/[\])]$/, '').trim();
  if (bare === '') return [];
  const extents: number[] = [];
  for (const part of bare.replace(/,\s*$/, '').split(/[,x×\s]+/)) {
    if (!/^\d+$/.test(part)) return undefined;
    extents.push(Number(part));
  }
  return extents;
}

export const shapeText = (shape: readonly number[]) => (shape.length === 0 ? 'scalar' : shape.join(' × '));
export const elementCount = (shape: readonly number[]) => shape.reduce((product, extent) => product * extent, 1);

// Parses a number, infinities and NaN included. Undefined if it is not a number.
export function parseNumber(text: string): number | undefined {
  const bare = text.trim().toLowerCase();
  if (/^[+-]?inf(inity)?$/.test(bare)) return bare.startsWith('-') ? -Infinity : Infinity;
  if (/^[+-]?nan$/.test(bare)) return NaN;
  if (bare === 'true') return 1;
  if (bare === 'false') return 0;
  if (bare === '' || !/^[+-]?(0x[0-9a-f]+|(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)$/.test(bare)) return undefined;
  return Number(bare);
}

export type Nested = number | Nested[];

// Rows of numbers: a JSON-like nested list, or lines of values separated by commas, tabs or spaces.
// Throws an Error with the position of the problem.
export function parseTensor(text: string): { shape: number[]; values: number[] } {
  const bare = text.trim();
  if (bare === '') throw new Error('no values are given');
  if (bare.startsWith('[')) return flatten(parseNested(bare));
  const rows = bare.split(/\r?\n|;/).map((row) => row.trim()).filter((row) => row !== '');
  const parsed = rows.map((row, r) =>
    row.split(/[,\t ]+/).filter((cell) => cell !== '').map((cell, c) => {
      const value = parseNumber(cell);
      if (value === undefined) throw new Error(`row ${r + 1}, value ${c + 1}: '${cell.slice(0, 20)}' is not a number`);
      return value;
    }),
  );
  const width = parsed[0].length;
  const ragged = parsed.findIndex((row) => row.length !== width);
  if (ragged >= 0) throw new Error(`row ${ragged + 1} has ${parsed[ragged].length} values, but row 1 has ${width}`);
  return { shape: parsed.length === 1 ? [width] : [parsed.length, width], values: parsed.flat() };
}

function parseNested(text: string): Nested {
  let at = 0;
  const skip = () => {
    while (at < text.length && /[\s]/.test(text[at])) at++;
  };
  const list = (depth: number): Nested => {
    if (depth > 8) throw new Error('lists are nested more than 8 deep');
    skip();
    if (text[at] !== '[') {
      const match = /^[^\s,[\]]+/.exec(text.slice(at, at + 40));
      const value = match && parseNumber(match[0]);
      if (!match || value === undefined) throw new Error(`character ${at + 1}: expected a number`);
      at += match[0].length;
      return value!;
    }
    at++;
    const items: Nested[] = [];
    for (;;) {
      skip();
      if (text[at] === ']') break;
      items.push(list(depth + 1));
      skip();
      if (text[at] === ',') at++;
      else if (text[at] !== ']') throw new Error(`character ${at + 1}: expected ',' or ']'`);
    }
    at++;
    return items;
  };
  const result = list(0);
  skip();
  if (at < text.length) throw new Error(`character ${at + 1}: unexpected text after the list`);
  return result;
}

function flatten(nested: Nested): { shape: number[]; values: number[] } {
  const shape: number[] = [];
  for (let level: Nested = nested; Array.isArray(level); level = level[0]) {
    shape.push(level.length);
    if (level.length === 0) break;
  }
  const values: number[] = [];
  const walk = (level: Nested, depth: number) => {
    if (!Array.isArray(level)) {
      if (depth !== shape.length) throw new Error('all lists of one level must have the same length');
      values.push(level);
      return;
    }
    if (level.length !== shape[depth]) throw new Error('all lists of one level must have the same length');
    level.forEach((item) => walk(item, depth + 1));
  };
  walk(nested, 0);
  return { shape, values };
}
