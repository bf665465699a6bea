// One input: the source of its values, its shape and dtype, and its values after rounding to that dtype.
import type { Scalar } from '../api';
import { sentence } from '../parts/problem';
import { elementCount, formatValue, parseNumber, parseShape, shapeText } from '../numbers';
import { isBlock, kDTypes, quantise } from '../quantise';
import { parseTensor } from '../tensor_text';
import { FileField, useFile } from './file_field';
import { type Input, inputError, kSources, type Source } from './program';

const kSourceNames: Record<Source, string> = {
  constant: 'Constant', list: 'List', random: 'Random', range: 'Range', eye: 'Identity', paste: 'Pasted text', file: 'File',
};

interface Props {
  name: string;
  index: number;
  input: Input;
  dtypes: readonly string[];
  stored?: Scalar[]; // the first values as the device will receive them, once the server has said so
  problem?: string; // what the server says of this input
  onChange: (change: Partial<Input>) => void;
  onRemove?: () => void;
}

export function InputEditor({ name, index, input, dtypes, stored, problem, onChange, onRemove }: Props) {
  const id = (part: string) => `input-${index}-${part}`;
  const file = useFile(input, onChange);
  const wrong = inputError(input) ?? problem;
  const tensor = input.kind === 'tensor';
  const source = tensor ? input.source : 'constant';
  const offered = dtypes.length > 0 ? kDTypes.filter((dtype) => dtypes.includes(dtype)) : kDTypes;
  return (
    <fieldset
      class="input" aria-describedby={id('note')} onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void file.take(event.dataTransfer?.files[0]);
      }}
    >
      <legend class="row">
        <span class="mono input-name">{name}</span>
        {onRemove && (
          <button type="button" class="plain small" onClick={onRemove} aria-label={`Remove input ${name}`}>
            Remove
          </button>
        )}
      </legend>
      <div class="input-grid">
        <div class="field">
          <label for={id('kind')}>Type</label>
          <select id={id('kind')} value={input.kind} onChange={(event) => onChange({ kind: event.currentTarget.value as Input['kind'] })}>
            <option value="tensor">Tensor</option>
            <option value="scalar">Scalar</option>
          </select>
        </div>
        {tensor && (
          <div class="field">
            <label for={id('source')}>Values</label>
            <select id={id('source')} value={input.source} onChange={(event) => onChange(sourceChange(input, event.currentTarget.value as Source))}>
              {kSources.map((each) => (
                <option value={each}>{kSourceNames[each]}</option>
              ))}
            </select>
          </div>
        )}
        <SourceFields id={id} input={input} source={source} file={file} onChange={onChange} />
        {tensor && source !== 'file' && (
          <Text id={id('shape')} label="Shape" broad value={input.shape} placeholder={source === 'list' || source === 'paste' ? 'as given' : 'scalar'} onChange={(shape) => onChange({ shape })} />
        )}
        {(source !== 'file' || !tensor) && (
          <div class="field">
            <label for={id('dtype')}>Data type</label>
            <select id={id('dtype')} value={input.dtype} onChange={(event) => onChange({ dtype: event.currentTarget.value })}>
              {(offered as readonly string[]).includes(input.dtype) ? null : <option value={input.dtype}>{input.dtype}</option>}
              {offered.map((dtype) => (
                <option value={dtype}>{dtype}</option>
              ))}
            </select>
          </div>
        )}
      </div>
      <p id={id('note')} class={wrong ? 'wrong break' : 'hint break'}>
        {wrong ? sentence(wrong) : note(input, stored)}
      </p>
    </fieldset>
  );
}

function sourceChange(input: Input, source: Source): Partial<Input> {
  const given = source === 'list' || source === 'paste';
  const square = source === 'eye' && (parseShape(input.shape)?.length ?? 0) < 2;
  const shape = given ? '' : square ? '4, 4' : input.shape.trim() === '' ? '4, 4' : input.shape;
  return { source, shape };
}

interface FieldProps {
  id: (part: string) => string;
  input: Input;
  source: Source;
  file: ReturnType<typeof useFile>;
  onChange: (change: Partial<Input>) => void;
}

function SourceFields({ id, input, source, file, onChange }: FieldProps) {
  switch (source) {
    case 'constant':
      return <Text id={id('value')} label="Value" value={input.value} onChange={(value) => onChange({ value })} />;
    case 'list':
      return <Text id={id('list')} label="Values, in rows of [ ]" value={input.list} wide onChange={(list) => onChange({ list })} />;
    case 'paste':
      return (
        <div class="field wide">
          <label for={id('paste')}>Rows of numbers, CSV, [[1, 2], [3, 4]], array(...) or tensor(...)</label>
          <textarea id={id('paste')} rows={4} spellcheck={false} value={input.paste} onInput={(event) => onChange({ paste: event.currentTarget.value })} />
        </div>
      );
    case 'random': {
      const normal = input.distribution === 'normal';
      return (
        <>
          <div class="field">
            <label for={id('distribution')}>Distribution</label>
            <select id={id('distribution')} value={input.distribution} onChange={(event) => onChange({ distribution: event.currentTarget.value as Input['distribution'] })}>
              <option value="uniform">Uniform</option>
              <option value="normal">Normal</option>
            </select>
          </div>
          <Text id={id('first')} label={normal ? 'Mean' : 'Low'} value={input.first} onChange={(first) => onChange({ first })} />
          <Text id={id('second')} label={normal ? 'Deviation' : 'High'} value={input.second} onChange={(second) => onChange({ second })} />
          <Text id={id('seed')} label="Seed" value={input.seed} onChange={(seed) => onChange({ seed })} />
        </>
      );
    }
    case 'range':
      return (
        <>
          <Text id={id('start')} label="Start" value={input.start} onChange={(start) => onChange({ start })} />
          <Text id={id('step')} label="Step" value={input.step} onChange={(step) => onChange({ step })} />
        </>
      );
    case 'file':
      return <FileField id={id} input={input} {...file} onChange={onChange} />;
    default:
      return null;
  }
}

interface TextProps {
  id: string;
  label: string;
  value: string;
  wide?: boolean; // a line of its own
  broad?: boolean; // room for 1, 1, 32, 32
  placeholder?: string;
  onChange: (value: string) => void;
}

const Text = ({ id, label, value, wide, broad, placeholder, onChange }: TextProps) => (
  <div class={`field ${wide ? 'wide' : broad ? 'broad' : ''}`}>
    <label for={id}>{label}</label>
    <input id={id} class="number" type="text" autocomplete="off" spellcheck={false} value={value} placeholder={placeholder} onInput={(event) => onChange(event.currentTarget.value)} />
  </div>
);

// Describes what the device will actually receive.
function note(input: Input, stored: Scalar[] | undefined): string {
  const { dtype } = input;
  if (input.kind === 'scalar' || input.source === 'constant') {
    const given = parseNumber(input.value)!;
    if (!Number.isSafeInteger(given) && /^-?\d+$/.test(input.value.trim()) && dtype.endsWith('int64')) return 'Stored exactly.';
    const [rounded] = quantise([given], dtype);
    const count = input.kind === 'scalar' ? '' : `${elementsText(input.shape)}, `;
    if (Object.is(rounded, given) || Number.isNaN(given)) return `${count}stored exactly in ${dtype}`;
    const error = given === 0 || dtype === 'bool' || !Number.isFinite(rounded) ? '' : `, off by ${Number(((100 * Math.abs(rounded - given)) / Math.abs(given)).toPrecision(2))} %`;
    return `${count}stored as ${dtype === 'bool' ? String(rounded !== 0) : formatValue(rounded, dtype)} in ${dtype}${error}`;
  }
  if (input.source === 'list' || input.source === 'paste') {
    const { shape, values, note: left } = parseTensor(input.source === 'list' ? input.list : input.paste);
    const remark = left ? `; ${left}` : '';
    const rows = (parseShape(input.shape)?.length ? parseShape(input.shape) : shape) ?? shape;
    if (values.length > 4096) return `${shapeText(shape)}, ${values.length} values${remark}`;
    const rounded = quantise(values, dtype, rows.at(-1) ?? 1);
    const changed = rounded.filter((value, i) => value !== values[i] && !Number.isNaN(value)).length;
    if (changed === 0) return `${shapeText(rows)}, all stored exactly in ${dtype}${remark}`;
    const sample = rounded.slice(0, 6).map((value) => formatValue(value, dtype)).join(', ');
    return `${shapeText(rows)}, stored in ${dtype} as ${sample}${rounded.length > 6 ? ' …' : ''} (${changed} of ${values.length} rounded)${remark}`;
  }
  if (input.source === 'file') {
    const tensor = input.file?.tensors.find((each) => each.name === input.tensor) ?? input.file?.tensors[0];
    return tensor ? `${input.file!.name}: ${tensor.dtype}, ${shapeText(tensor.shape)}${preview(stored, tensor.dtype, elementCount(tensor.shape))}` : '';
  }
  const grain = isBlock(dtype) ? `, 16 adjacent elements of a row share an exponent in ${dtype}` : '';
  return `${elementsText(input.shape)}${preview(stored, dtype, elementCount(parseShape(input.shape) ?? []))}${grain}`;
}

const preview = (stored: Scalar[] | undefined, dtype: string, count: number) =>
  stored?.length ? `: ${stored.slice(0, 4).map((value) => formatValue(value, dtype)).join(', ')}${count > 4 ? ' …' : ''}` : '';

function elementsText(shape: string): string {
  const extents = parseShape(shape) ?? [];
  const count = elementCount(extents);
  return `${count.toLocaleString('en')} ${count === 1 ? 'element' : 'elements'}`;
}
