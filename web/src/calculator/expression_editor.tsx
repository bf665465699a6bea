// The expression box: a text area over a layer that draws the coloured text. An error is underlined at its column.
import { useRef, useState } from 'preact/hooks';
import type { Place } from '../api';
import { findOp, ops } from '../catalogue';
import { offsetOf, opAt, tokens } from '../expression';

const kExamples: [string, string][] = [
  ['Attention scores', 'softmax(q @ k.T / sqrt(64), axis=-1)'],
  ['A layer', 'gelu(x @ w + b)'],
  ['Normalise, then largest', 'y = layer_norm(x)\nmax(y, axis=-1)'],
  ['Distance', 'sqrt(sum((a - b) ** 2, axis=-1))'],
  ['Without inputs', 'mean(rand([64, 64], seed=1) > 0.5)'],
];

interface Props {
  value: string;
  place?: Place;
  problem?: string;
  onChange: (value: string) => void;
  onRun: () => void;
}

export function ExpressionEditor({ value, place, problem, onChange, onRun }: Props) {
  const area = useRef<HTMLTextAreaElement>(null);
  const [caret, setCaret] = useState(0);
  ops.value;
  const from = place ? offsetOf(value, place.line, place.column) : -1;
  const to = place ? from + Math.max(1, place.length) : -1;
  const called = opAt(value, caret);
  const op = called ? findOp(called) : undefined;
  const follow = () => setCaret(area.current?.selectionStart ?? 0);
  const rows = Math.max(3, value.split('\n').length + 1);
  return (
    <div class="stack tight">
      <div class="row between">
        <label for="expression">Expression</label>
        <select
          aria-label="Example expressions" class="examples" value=""
          onChange={(event) => {
            if (event.currentTarget.value) onChange(event.currentTarget.value);
            event.currentTarget.value = '';
          }}
        >
          <option value="">Examples</option>
          {kExamples.map(([title, text]) => (
            <option value={text}>{title}</option>
          ))}
        </select>
      </div>
      <div class="editor">
        <pre aria-hidden="true">
          {coloured(value, from, to)}
          {'\n'}
        </pre>
        <textarea
          id="expression" ref={area} rows={rows} spellcheck={false} autocapitalize="off" value={value} aria-invalid={problem !== undefined}
          aria-describedby="expression-note" onInput={(event) => (onChange(event.currentTarget.value), follow())} onKeyUp={follow} onClick={follow}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              onRun();
            }
          }}
        />
      </div>
      <div id="expression-note" class="small" aria-live="polite">
        {problem ? (
          <p class="wrong break">
            {place && `${place.line > 1 || value.includes('\n') ? `Line ${place.line}, column` : 'Column'} ${place.column}: `}
            {problem}
          </p>
        ) : op ? (
          <p class="soft break">
            <span class="mono">{`${op.name}(${[...op.input_names, ...op.parameters.map((parameter) => `${parameter.name}=`)].join(', ')})`}</span>{' '}
            <span class="mono">{op.formula}</span> {op.doc}
          </p>
        ) : (
          <p class="soft">Names without a value become inputs. Ctrl + Enter computes.</p>
        )}
      </div>
    </div>
  );
}

function coloured(source: string, from: number, to: number) {
  const pieces = tokens(source).flatMap((token) => {
    const end = token.at + token.text.length;
    if (to <= token.at || from >= end) return [<span class={`t-${token.kind}`}>{token.text}</span>];
    const cut = [token.text.slice(0, Math.max(0, from - token.at)), token.text.slice(Math.max(0, from - token.at), to - token.at), token.text.slice(to - token.at)];
    return cut.map((text, i) => text && <span class={`t-${token.kind} ${i === 1 ? 't-wrong' : ''}`}>{text}</span>);
  });
  if (from >= source.length) pieces.push(<span class="t-wrong"> </span>);
  return pieces;
}
