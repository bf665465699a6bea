// A picture as the tensor of a model: where its channels are, their order and their scale; pure functions.

export interface Layout {
  batch: number;
  channels: number;
  height: number;
  width: number;
  channelsFirst: boolean;
}

// What the numbers of a pixel are. Models are trained with one of these, and say so in their description at best.
export const kScales = {
  unit: { name: '0 to 1', largest: 1, mean: [0, 0, 0], deviation: [1, 1, 1] },
  bytes: { name: '0 to 255', largest: 255, mean: [0, 0, 0], deviation: [1, 1, 1] },
  signed: { name: '−1 to 1', largest: 1, mean: [0.5, 0.5, 0.5], deviation: [0.5, 0.5, 0.5] },
  imagenet: { name: 'ImageNet mean and deviation', largest: 1, mean: [0.485, 0.456, 0.406], deviation: [0.229, 0.224, 0.225] },
} as const;
export type Scale = keyof typeof kScales;
export type Order = 'rgb' | 'bgr';

const isChannels = (extent: number) => extent === 1 || extent === 3;

// Of a shape such as 1, 3, 224, 224 or 224, 224, 3; undefined where no picture fits.
export function layoutOf(shape: readonly number[]): Layout | undefined {
  const [batch, rest] = shape.length === 4 ? [shape[0], shape.slice(1)] : [1, shape];
  if (rest.length !== 3 || rest.some((extent) => extent < 1)) return undefined;
  const [a, b, c] = rest;
  if (isChannels(a)) return { batch, channels: a, height: b, width: c, channelsFirst: true };
  return isChannels(c) ? { batch, channels: c, height: a, width: b, channelsFirst: false } : undefined;
}

// |pixels|: red, green, blue and opacity of each, 0 to 255, row by row, of the layout's height and width.
export function tensorOf(pixels: Uint8ClampedArray, layout: Layout, order: Order, scale: Scale): number[] {
  const { batch, channels, height, width, channelsFirst } = layout;
  const { largest: white, mean, deviation } = kScales[scale];
  const area = height * width;
  const image = new Array<number>(area * channels);
  for (let i = 0; i < area; i++) {
    const rgb = [pixels[4 * i], pixels[4 * i + 1], pixels[4 * i + 2]];
    // Luminance as ITU-R BT.601 weighs it.
    const values = channels === 1 ? [0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]] : rgb;
    for (let c = 0; c < channels; c++) {
      const place = order === 'rgb' ? c : channels - 1 - c;
      image[channelsFirst ? place * area + i : i * channels + place] = ((values[c] * white) / 255 - mean[c]) / deviation[c];
    }
  }
  return Array.from({ length: batch }, () => image).flat();
}

// The part of a picture that is drawn: all of it, or the largest part of the target's proportions in the middle.
export function sourceRectangle(from: { width: number; height: number }, to: { width: number; height: number }, crops: boolean): [number, number, number, number] {
  if (!crops) return [0, 0, from.width, from.height];
  const factor = Math.min(from.width / to.width, from.height / to.height);
  const width = to.width * factor;
  const height = to.height * factor;
  return [(from.width - width) / 2, (from.height - height) / 2, width, height];
}

// The places of the largest values, the largest first.
export function largest(values: readonly number[], count: number): [number, number][] {
  return values
    .map((value, index): [number, number] => [index, value])
    .sort((a, b) => b[1] - a[1])
    .slice(0, count);
}
