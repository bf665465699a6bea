// Rounds values to a dtype, for display next to the inputs; computed in the page so that it updates while the user types.

export const kDTypes = [
  'bfloat16', 'float32', 'bfloat8_b', 'bfloat4_b', 'float16', 'float64',
  'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64', 'bool',
] as const;

export const isBlock = (dtype: string) => dtype === 'bfloat8_b' || dtype === 'bfloat4_b';

const kIntegers: Record<string, [number, number]> = {
  int8: [-128, 127], int16: [-32768, 32767], int32: [-(2 ** 31), 2 ** 31 - 1], int64: [-(2 ** 63), 2 ** 63],
  uint8: [0, 255], uint16: [0, 65535], uint32: [0, 2 ** 32 - 1], uint64: [0, 2 ** 64],
};

const bits = new DataView(new ArrayBuffer(4));
const floatBits = (value: number) => (bits.setFloat32(0, value), bits.getUint32(0));
const fromBits = (pattern: number) => (bits.setUint32(0, pattern >>> 0), bits.getFloat32(0));

function toBfloat16(value: number): number {
  const pattern = floatBits(Math.fround(value));
  if (Number.isNaN(value) || !Number.isFinite(Math.fround(value))) return Math.fround(value);
  return fromBits((pattern + 0x7fff + ((pattern >>> 16) & 1)) & 0xffff0000);
}

function toFloat16(value: number): number {
  if (!Number.isFinite(value) || value === 0) return value;
  const magnitude = Math.abs(value);
  const exponent = Math.max(Math.floor(Math.log2(magnitude)), -14);
  const step = 2 ** (exponent - 10);
  const rounded = roundHalfEven(magnitude / step) * step;
  return Math.sign(value) * (rounded > 65504 ? Infinity : rounded);
}

function roundHalfEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below;
}

// Sixteen adjacent elements share the largest exponent; each keeps a sign and 7 or 3 bits of magnitude.
function blockOf(values: number[], magnitudeBits: number): number[] {
  const patterns = values.map((value) => floatBits(Math.fround(value)));
  const shared = Math.max(...patterns.map((pattern) => (pattern >>> 23) & 0xff));
  const largest = 2 ** magnitudeBits - 1;
  return patterns.map((pattern, i) => {
    const exponent = (pattern >>> 23) & 0xff;
    if (exponent === 255) return values[i];
    if (exponent === 0) return 0;
    const shift = shared - exponent;
    const mantissa = shift > 24 ? 0 : ((pattern & 0x7fffff) | 0x800000) >>> shift;
    const drop = 24 - magnitudeBits;
    const magnitude = Math.min(roundHalfEven(mantissa / 2 ** drop), largest);
    return (pattern >>> 31 ? -1 : 1) * magnitude * 2 ** (shared - 127 - (magnitudeBits - 1)) + 0;
  });
}

// |rowLength| matters only for block formats: a block never crosses a row.
export function quantise(values: readonly number[], dtype: string, rowLength = values.length): number[] {
  if (isBlock(dtype)) {
    const magnitudeBits = dtype === 'bfloat8_b' ? 7 : 3;
    const result: number[] = [];
    const row = Math.max(1, rowLength);
    for (let start = 0; start < values.length; start += row) {
      for (let block = start; block < Math.min(start + row, values.length); block += 16) {
        result.push(...blockOf(values.slice(block, Math.min(block + 16, start + row)) as number[], magnitudeBits));
      }
    }
    return result;
  }
  const range = kIntegers[dtype];
  return values.map((value) => {
    if (range) return Number.isNaN(value) ? 0 : Math.min(Math.max(Math.trunc(value), range[0]), range[1]);
    switch (dtype) {
      case 'bool': return value === 0 ? 0 : 1;
      case 'bfloat16': return toBfloat16(value);
      case 'float16': return toFloat16(value);
      case 'float32': return Math.fround(value);
      default: return value;
    }
  });
}
