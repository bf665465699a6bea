// Tensors in, tensors out: a shape and values, or a picture, for every input.
import { useState } from 'preact/hooks';
import { parseJson, post, type ProblemBody, type Scalar } from '../api';
import { elementCount, formatValue, parseShape, shapeText } from '../numbers';
import { problemFrom, ProblemNotice } from '../parts/problem';
import { largest } from './picture';
import { type Picture, PictureField, pictureTensor } from './picture_field';
import type { ModelValue } from './served';

const kDatatypes: Record<string, string> = {
  bool: 'BOOL', uint8: 'UINT8', uint16: 'UINT16', uint32: 'UINT32', uint64: 'UINT64', int8: 'INT8', int16: 'INT16', int32: 'INT32', int64: 'INT64',
  float16: 'FP16', bfloat16: 'BF16', float32: 'FP32', float64: 'FP64',
};
const kMostElements = 1 << 20;
const kShown = 24;

interface Field {
  name: string;
  dtype: string;
  shape: string;
  values: string; // numbers, or "random", "zeros", "ones"
  picture?: Picture; // instead of the values
}
interface Output {
  name: string;
  shape: number[];
  datatype: string;
  data: Scalar[];
}

// Where the model leaves an extent open: one row; the size of pictures that most networks take; a short text.
const openExtent = (value: ModelValue, axis: number) => (axis === 0 ? 1 : value.shape.length === 4 && value.shape.some((extent) => extent === 3 || extent === 1) ? 224 : 16);

const firstField = (value: ModelValue): Field => ({
  name: value.name,
  dtype: value.dtype ?? 'float32',
  shape: value.shape.map((extent, i) => (typeof extent === 'number' ? extent : openExtent(value, i))).join(', '),
  values: value.dtype?.startsWith('float') ? 'random' : 'ones',
});

// One number for each of several classes, as a network that recognises things gives.
const isScores = ({ shape, data }: Output) => data.length >= 3 && shape.filter((extent) => extent !== 1).length === 1 && data.every((value) => typeof value === 'number');

function dataOf(field: Field): { shape: number[]; data: unknown } {
  const shape = parseShape(field.shape);
  if (!shape) throw new Error(`${field.name}: a shape is written as 1, 3, 224, 224.`);
  const count = elementCount(shape);
  if (count > kMostElements) throw new Error(`${field.name}: this form sends at most ${kMostElements} elements; use a client for more.`);
  if (field.picture) return { shape, data: pictureTensor(field.picture, shape, field.dtype) };
  const word = field.values.trim().toLowerCase();
  if (word === 'random') return { shape, data: Array.from({ length: count }, () => (field.dtype.startsWith('float') ? Math.random() : Math.floor(Math.random() * 2))) };
  if (word === 'zeros' || word === 'ones') return { shape, data: Array(count).fill(word === 'ones' ? 1 : 0) };
  try {
    return { shape, data: parseJson(word.startsWith('[') ? field.values : `[${field.values}]`) };
  } catch {
    throw new Error(`${field.name}: values are a list of numbers, or random, zeros, ones.`);
  }
}

export function TryTensors({ model, inputs }: { model: string; inputs: ModelValue[] }) {
  const [fields, setFields] = useState(() => inputs.filter((value) => value.dtype && !value.optional).map(firstField));
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<ProblemBody | undefined>(undefined);
  const [outputs, setOutputs] = useState<Output[] | undefined>(undefined);
  const change = (index: number, part: Partial<Field>) => setFields(fields.map((field, i) => (i === index ? { ...field, ...part } : field)));
  const run = async () => {
    setBusy(true);
    setProblem(undefined);
    try {
      const tensors = fields.map((field) => ({ name: field.name, datatype: kDatatypes[field.dtype] ?? 'FP32', ...dataOf(field) }));
      const answer = await post<{ outputs: Output[] }>(`/v2/models/${encodeURIComponent(model)}/infer`, { inputs: tensors });
      setOutputs(answer.outputs);
    } catch (error) {
      setProblem(problemFrom(error));
    }
    setBusy(false);
  };
  return (
    <section class="card stack" aria-labelledby="tensors-title">
      <h2 id="tensors-title">Try it: tensors</h2>
      {fields.map((field, i) => (
        <fieldset key={field.name} class="tensor-field">
          <legend class="mono">{`${field.name} (${field.dtype})`}</legend>
          <div class="field">
            <label for={`shape-${i}`}>Shape</label>
            <input id={`shape-${i}`} class="number" value={field.shape} onInput={(event) => change(i, { shape: event.currentTarget.value })} />
          </div>
          <div class="field">
            <label for={`values-${i}`}>Values: numbers, random, zeros or ones</label>
            <input id={`values-${i}`} class="number" value={field.picture ? 'the picture' : field.values} disabled={field.picture !== undefined} onInput={(event) => change(i, { values: event.currentTarget.value })} />
          </div>
          <PictureField id={field.name} shape={parseShape(field.shape) ?? []} dtype={field.dtype} picture={field.picture} onChange={(picture) => change(i, { picture })} />
        </fieldset>
      ))}
      <div class="row">
        <button type="button" class="primary" disabled={busy} onClick={() => void run()}>
          {busy ? 'Running …' : 'Run the model'}
        </button>
      </div>
      {problem && <ProblemNotice problem={problem} />}
      {outputs && (
        <dl class="stack tight" aria-label="Outputs">
          {outputs.map((output) => (
            <div key={output.name}>
              <dt class="mono">{`${output.name}: ${output.datatype} ${shapeText(output.shape)}`}</dt>
              <dd class="mono break small">
                {output.data.slice(0, kShown).map((value) => formatValue(value)).join(', ')}
                {output.data.length > kShown ? ', …' : ''}
              </dd>
              {isScores(output) && (
                <dd class="small">
                  Largest:{' '}
                  {largest(output.data.map(Number), 5)
                    .map(([index, value]) => `${index} (${formatValue(value)})`)
                    .join(', ')}
                </dd>
              )}
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}
