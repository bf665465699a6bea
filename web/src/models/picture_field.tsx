// A picture for an input: dropped or chosen, scaled to the input's shape, with the order and the scale of its channels.
import { useEffect, useRef, useState } from 'preact/hooks';
import { kScales, type Layout, layoutOf, type Order, type Scale, sourceRectangle, tensorOf } from './picture';

export interface Picture {
  name: string;
  bitmap: ImageBitmap;
  order: Order;
  scale: Scale;
  crops: boolean;
}

function drawn(picture: Picture, layout: Layout): Uint8ClampedArray {
  const canvas = document.createElement('canvas');
  canvas.width = layout.width;
  canvas.height = layout.height;
  const context = canvas.getContext('2d', { willReadFrequently: true })!;
  context.fillStyle = '#fff'; // behind what is transparent
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.imageSmoothingQuality = 'high';
  context.drawImage(picture.bitmap, ...sourceRectangle(picture.bitmap, layout, picture.crops), 0, 0, layout.width, layout.height);
  return context.getImageData(0, 0, layout.width, layout.height).data;
}

export function pictureTensor(picture: Picture, shape: readonly number[], dtype: string): number[] {
  const layout = layoutOf(shape);
  if (!layout) throw new Error('A picture needs a shape such as 1, 3, 224, 224 or 224, 224, 3.');
  const values = tensorOf(drawn(picture, layout), layout, picture.order, picture.scale);
  return dtype.startsWith('float') || dtype === 'bfloat16' ? values : values.map(Math.round);
}

export function PictureField({ id, shape, dtype, picture, onChange }: { id: string; shape: readonly number[]; dtype: string; picture: Picture | undefined; onChange: (picture: Picture | undefined) => void }) {
  const [over, setOver] = useState(false);
  const [problem, setProblem] = useState('');
  const layout = layoutOf(shape);
  const take = async (file: File | undefined) => {
    if (!file) return;
    setProblem('');
    try {
      const bitmap = await createImageBitmap(file);
      onChange({ order: 'rgb', scale: dtype === 'uint8' ? 'bytes' : 'unit', crops: true, ...picture, name: file.name, bitmap });
    } catch {
      onChange(undefined);
      setProblem(`${file.name} is not a picture that this browser reads.`);
    }
  };
  if (!layout) return null;
  return (
    <div class="picture">
      <label
        class={`drop ${over ? 'over' : ''}`}
        onDragOver={(event) => (event.preventDefault(), setOver(true))}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          void take(event.dataTransfer?.files[0]);
        }}
      >
        <span>{picture ? picture.name : 'Or drop a picture here, or choose one'}</span>
        <input
          type="file"
          class="hidden"
          accept="image/*"
          aria-label={`Picture for ${id}`}
          onChange={(event) => {
            const file = event.currentTarget.files?.[0];
            event.currentTarget.value = '';
            void take(file);
          }}
        />
      </label>
      {problem && <p class="wrong" role="alert">{problem}</p>}
      {picture && <Options id={id} layout={layout} picture={picture} onChange={onChange} />}
    </div>
  );
}

function Options({ id, layout, picture, onChange }: { id: string; layout: Layout; picture: Picture; onChange: (picture: Picture | undefined) => void }) {
  const preview = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const canvas = preview.current;
    if (canvas) canvas.getContext('2d')!.putImageData(new ImageData(new Uint8ClampedArray(drawn(picture, layout)), layout.width, layout.height), 0, 0);
  }, [picture.bitmap, picture.crops, layout.width, layout.height]);
  return (
    <div class="picture-options">
      <canvas ref={preview} width={layout.width} height={layout.height} role="img" aria-label={`${picture.name} as the model sees it, ${layout.width} × ${layout.height}`} />
      <div class="field">
        <label for={`${id}-order`}>Channels</label>
        <select id={`${id}-order`} value={picture.order} disabled={layout.channels === 1} onChange={(event) => onChange({ ...picture, order: event.currentTarget.value as Order })}>
          <option value="rgb">{layout.channels === 1 ? 'grey' : 'red, green, blue'}</option>
          {layout.channels !== 1 && <option value="bgr">blue, green, red</option>}
        </select>
      </div>
      <div class="field">
        <label for={`${id}-scale`}>Values</label>
        <select id={`${id}-scale`} value={picture.scale} onChange={(event) => onChange({ ...picture, scale: event.currentTarget.value as Scale })}>
          {Object.entries(kScales).map(([scale, { name }]) => (
            <option value={scale}>{name}</option>
          ))}
        </select>
      </div>
      <div class="field">
        <label for={`${id}-fit`}>Fit</label>
        <select id={`${id}-fit`} value={picture.crops ? 'crop' : 'stretch'} onChange={(event) => onChange({ ...picture, crops: event.currentTarget.value === 'crop' })}>
          <option value="crop">the middle, cropped</option>
          <option value="stretch">all of it, stretched</option>
        </select>
      </div>
      <button type="button" class="plain small" onClick={() => onChange(undefined)}>
        Remove the picture
      </button>
    </div>
  );
}
