// The op's own parameters, each with its default and bounds.
import type { Op, OpParameter } from '../api';
import { kDTypes } from '../quantise';
import { parameterError } from './program';

interface Props {
  op: Op;
  values: Record<string, string>;
  onChange: (name: string, text: string) => void;
}

export function Parameters({ op, values, onChange }: Props) {
  if (op.parameters.length === 0) return null;
  return (
    <fieldset class="input parameters">
      <legend class="label">Parameters</legend>
      <div class="input-grid">
        {op.parameters.map((parameter) => (
          <Field parameter={parameter} text={values[parameter.name]} onChange={(text) => onChange(parameter.name, text)} />
        ))}
      </div>
    </fieldset>
  );
}

function Field({ parameter, text, onChange }: { parameter: OpParameter; text: string | undefined; onChange: (text: string) => void }) {
  const id = `parameter-${parameter.name}`;
  const wrong = parameterError(parameter, text);
  const shown = { id, 'aria-describedby': `${id}-note`, 'aria-invalid': wrong !== undefined && text !== undefined };
  const usual = defaultText(parameter);
  const choices = parameter.type === 'dtype' ? kDTypes : parameter.type === 'boolean' ? ['true', 'false'] : parameter.choices;
  return (
    <div class="field parameter">
      <label for={id}>
        <span class="mono">{parameter.name}</span>
        {parameter.required && ' (needed)'}
      </label>
      {choices.length > 0 ? (
        <select {...shown} value={text ?? ''} onChange={(event) => onChange(event.currentTarget.value)}>
          <option value="">{usual === '' ? 'choose' : `${usual} (default)`}</option>
          {choices.map((choice) => (
            <option value={choice}>{choice}</option>
          ))}
        </select>
      ) : (
        <input {...shown} class="number" type="text" autocomplete="off" spellcheck={false} value={text ?? ''} placeholder={usual} onInput={(event) => onChange(event.currentTarget.value)} />
      )}
      <p id={`${id}-note`} class={wrong && text !== undefined ? 'wrong' : 'hint'}>
        {wrong && text !== undefined ? wrong : describe(parameter)}
      </p>
    </div>
  );
}

function defaultText(parameter: OpParameter): string {
  if (parameter.default === null) return parameter.required ? '' : 'none';
  return Array.isArray(parameter.default) ? parameter.default.join(', ') : String(parameter.default);
}

function describe({ doc, range, type }: OpParameter): string {
  return [doc, type === 'integers' ? 'a list such as 0, 1' : '', range].filter(Boolean).join('; ');
}
