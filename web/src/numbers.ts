// Formatting and parsing of numbers.

// Every value on the page is written by this rule: in full if it has at most 12 digits (1.3125 and 0.10009765625 of bfloat16), else
// in the fewest digits that float32 (for float64: float64) reads back as the same value. Strings are numbers that JavaScript cannot hold.
export function formatValue(value: number | string | boolean | null | undefined, dtype = 'float32'): string {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'string') return kWords[value] ?? value;
  if (typeof value === 'boolean') return value ? 'true' : 'false';
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
  if (Object.is(value, -0)) return '-0';
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value);
  if (dtype === 'float64') return inDigits(value, 17);
  const narrow = dtype === 'float16' || dtype.startsWith('bfloat');
  if (narrow) {
    const exact = inDigits(Math.fround(value), 12);
    if (Number(exact) === Math.fround(value)) return exact;
  }
  for (let digits = 1; digits < 9; digits++) {
    const text = inDigits(value, digits);
    if (Math.fround(Number(text)) === Math.fround(value)) return text;
  }
  return inDigits(value, 9);
}

const kWords: Record<string, string> = { NaN: 'nan', Infinity: 'inf', '-Infinity': '-inf' };

// Without trailing zeros. 17 digits: the fewest that JavaScript reads back.
function inDigits(value: number, digits: number): string {
  const magnitude = Math.abs(value);
  const plain = magnitude >= 1e-4 && magnitude < 1e9;
  if (digits === 17) return plain || String(value).includes('e') ? String(value) : value.toExponential();
  const text = plain ? value.toPrecision(digits) : value.toExponential(digits - 1);
  const written = plain && text.includes('e') ? String(Number(text)) : text;
  return written.replace(/(\.\d*?)0+(e|$)/, '$1$2').replace(/\.(e|$)/, '$1');
}

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

// Small amounts in two digits: $0.000019.
export function formatMoney(dollars: number): string {
  if (dollars === 0) return '$0';
  if (dollars >= 0.01) return `$${dollars.toFixed(2)}`;
  const places = Math.min(20, 1 - Math.floor(Math.log10(dollars)));
  return `$${dollars.toFixed(places).replace(/0+$/, '')}`;
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

