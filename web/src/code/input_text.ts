// An input as an expression of the expression language that has exactly the values the device receives.
import { elementCount, parseNumber, parseShape } from '../numbers';
import { quantise } from '../quantise';
import { parseTensor } from '../tensor_text';
import type { Input } from '../calculator/program';

// Expressions may have at most 10,000 tokens; a longer list is written in another way.
export const kLongList = 2000;

export const isList = (input: Input) => input.kind === 'tensor' && (input.source === 'list' || input.source === 'paste');
export const isFile = (input: Input) => input.kind === 'tensor' && input.source === 'file';
export const listOf = (input: Input) => parseTensor(input.source === 'list' ? input.list : input.paste);
export const listShape = (input: Input) => (input.shape.trim() === '' ? listOf(input).shape : (parseShape(input.shape) ?? []));

const isWide = (dtype: string) => dtype === 'int64' || dtype === 'uint64';

// The integer that int64 or uint64 stores.
export function storedInteger(text: string, dtype: string): bigint {
  const bare = text.trim();
  const number = parseNumber(bare) ?? 0;
  const value = /^[-+]?\d+$/.test(bare) ? BigInt(bare.replace(/^\+/, '')) : Number.isFinite(number) ? BigInt(Math.trunc(number)) : number > 0 ? 1n << 64n : number < 0 ? -(1n << 64n) : 0n;
  const [low, high] = dtype === 'int64' ? [-(1n << 63n), (1n << 63n) - 1n] : [0n, (1n << 64n) - 1n];
  return value < low ? low : value > high ? high : value;
}

// A literal is an int64, so a larger uint64 is a sum, and the smallest int64 a difference.
function integerText(value: bigint, dtype: string): string {
  const most = (1n << 63n) - 1n;
  if (value > most) return `(cast(${most}, ${dtype}) + cast(${value - most > most ? `${most}, ${dtype}) + cast(${value - most - most}` : value - most}, ${dtype}))`;
  return value === -(1n << 63n) ? `(cast(-${most}, ${dtype}) - 1)` : value > -(1n << 53n) && value < 1n << 53n ? `${value}` : `cast(${value}, ${dtype})`;
}

export const numberText = (value: number) => (Number.isNaN(value) ? 'nan' : value === Infinity ? 'inf' : value === -Infinity ? '-inf' : Object.is(value, -0) ? '-0.0' : String(value));

// The number as stored in |dtype|.
export function storedText(text: string, dtype: string): string {
  if (isWide(dtype)) return `${storedInteger(text, dtype)}`;
  const [stored] = quantise([parseNumber(text) ?? NaN], dtype);
  return numberText(stored);
}

// The same as a literal of the expression language.
export const scalarText = (text: string, dtype: string) => (isWide(dtype) ? integerText(storedInteger(text, dtype), dtype) : storedText(text, dtype));

function listText(input: Input): string {
  const { shape, values, texts } = listOf(input);
  const { dtype } = input;
  const rows = listShape(input);
  const stored = isWide(dtype) ? [] : quantise(values, dtype, rows.at(-1) ?? 1);
  // Literals with a point are float32: a value that needs more is cast by itself.
  const items = values.map((_, i) =>
    isWide(dtype) ? integerText(storedInteger(texts[i], dtype), dtype) : dtype === 'float64' && Math.fround(stored[i]) !== stored[i] && !Number.isNaN(stored[i]) ? `cast(${numberText(stored[i])}, float64)` : numberText(stored[i]),
  );
  // A list with a tensor in it takes only tensors.
  const even = items.some((item) => item.includes('(')) ? items.map((item) => (item.includes('(') ? item : `cast(${item}, ${dtype})`)) : items;
  let at = 0;
  const build = (axis: number): string => (axis === shape.length ? even[at++] : `[${Array.from({ length: shape[axis] }, () => build(axis + 1)).join(', ')}]`);
  const literal = build(0);
  return `cast(${rows.join() === shape.join() ? literal : `reshape(${literal}, [${rows.join(', ')}])`}, ${dtype})`;
}

function randomText(input: Input, shape: string): string {
  const normal = input.distribution === 'normal';
  const wide = /int|64/.test(input.dtype) && input.dtype !== 'bool';
  const first = Number(input.first);
  const scale = normal ? Number(input.second) : Number(input.second) - first;
  const base = `${normal ? 'randn' : 'rand'}(${shape}${wide ? ', dtype=float64' : ''}, seed=${input.seed.trim()})`;
  const scaled = `${base}${scale === 1 ? '' : ` * ${numberText(scale)}`}${first === 0 ? '' : ` + ${numberText(first)}`}`;
  return input.dtype === (wide ? 'float64' : 'float32') ? scaled : `cast(${scaled}, ${input.dtype})`;
}

export function inputText(input: Input): string {
  const extents = parseShape(input.shape) ?? [];
  const shape = `[${extents.join(', ')}]`;
  const { dtype } = input;
  if (input.kind === 'scalar') return `cast(${scalarText(input.value, dtype)}, ${dtype})`;
  switch (input.source) {
    case 'constant':
      return isWide(dtype) ? `broadcast_to(cast(${scalarText(input.value, dtype)}, ${dtype}), ${shape})` : `full(${shape}, ${scalarText(input.value, dtype)}, dtype=${dtype})`;
    case 'list':
    case 'paste':
      return listText(input);
    case 'random':
      return randomText(input, shape);
    case 'range': {
      const [start, step] = [Number(input.start), Number(input.step)];
      const line = `cast(arange(0, ${elementCount(extents)}), float64) * ${numberText(step)} + ${numberText(start)}`;
      return `cast(reshape(${line}, ${shape}), ${dtype})`;
    }
    case 'eye': {
      const matrix = `eye(${extents.slice(-2).join(', ')}, dtype=${dtype})`;
      return extents.length > 2 ? `broadcast_to(${matrix}, ${shape})` : matrix;
    }
    case 'file':
      return '';
  }
}
