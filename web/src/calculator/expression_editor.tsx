// The expression box: a text area over a layer that draws the coloured text. An error is underlined at its column, and ops,
// parameters and names are completed.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Place } from '../api';
import { findOp, ops } from '../catalogue';
import { offsetOf, opAt, type Suggestion, suggestions, tokens } from '../expression';
import { callOf } from './program';
import { program } from './state';

const kExamples: [string, string][] = [
  ['Attention scores', 'softmax(q @ k.T / sqrt(64), axis=-1)'],
  ['A layer', 'gelu(x @ w + b)'],
  ['Normalise, then largest', 'y = layer_norm(x)\nmax(y, axis=-1)'],
  ['Two results', 'values, indices = top_k(x, 3)'],
  ['Distance', 'sqrt(sum((a - b) ** 2, axis=-1))'],
  ['Without inputs', 'mean(rand([64, 64], seed=1) > 0.5)'],
];

interface Props {
  value: string;
  place?: Place;
  problem?: string;
  onChange: (value: string) => void;
}

export function ExpressionEditor({ value, place, problem, onChange }: Props) {
  const area = useRef<HTMLTextAreaElement>(null);
  const [caret, setCaret] = useState(0);
  const [offered, setOffered] = useState<{ from: number; list: Suggestion[] }>({ from: 0, list: [] });
  const [at, setAt] = useState(-1); // -1: none is selected, and Enter is a new line
  const wantedCaret = useRef<number | undefined>(undefined);
  ops.value;
  const from = place ? offsetOf(value, place.line, place.column) : -1;
  const to = place ? from + Math.max(1, place.length) : -1;
  const called = opAt(value, caret);
  const op = called ? findOp(called) : undefined;
  const rows = Math.max(3, value.split('\n').length + 1);
  const open = offered.list.length > 0;

  useEffect(() => {
    if (wantedCaret.current === undefined) return;
    area.current!.setSelectionRange(wantedCaret.current, wantedCaret.current);
    setCaret(wantedCaret.current);
    wantedCaret.current = undefined;
  }, [value]);

  const follow = () => setCaret(area.current?.selectionStart ?? 0);
  const close = () => (setOffered({ from: 0, list: [] }), setAt(-1));
  const offer = () => {
    setOffered(suggestions(area.current!.value, area.current!.selectionStart));
    setAt(-1);
  };
  const accept = (suggestion: Suggestion) => {
    const end = area.current!.selectionStart;
    const rest = value.slice(end);
    // A bracket that is there already is not written twice.
    const text = suggestion.text.endsWith('(') && rest.startsWith('(') ? suggestion.text.slice(0, -1) : suggestion.text;
    wantedCaret.current = offered.from + text.length;
    close();
    area.current!.focus();
    onChange(value.slice(0, offered.from) + text + rest);
  };
  const key = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault();
      offer();
    } else if (!open || event.ctrlKey || event.metaKey) {
      if (event.key === 'Enter') close();
    } else if (step) {
      event.preventDefault();
      setAt(at < 0 ? (step > 0 ? 0 : offered.list.length - 1) : (at + step + offered.list.length) % offered.list.length);
    } else if ((event.key === 'Tab' && !event.shiftKey) || (event.key === 'Enter' && at >= 0)) {
      event.preventDefault();
      accept(offered.list[Math.max(0, at)]);
    } else if (event.key === 'Escape') {
      event.preventDefault();
      close();
    } else if (event.key === 'Enter' || event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
      close();
    }
  };
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
          {findOp(program.value.op) && <option value={callOf(program.value)}>{`The operation: ${callOf(program.value)}`}</option>}
          {kExamples.map(([title, text]) => (
            <option value={text}>{title}</option>
          ))}
        </select>
      </div>
      <div class="editor-box">
        <div class="editor">
          <pre aria-hidden="true">
            {coloured(value, from, to)}
            {'\n'}
          </pre>
          <textarea
            id="expression" ref={area} rows={rows} spellcheck={false} autocapitalize="off" autocomplete="off" value={value} aria-invalid={problem !== undefined}
            aria-describedby="expression-note" aria-autocomplete="list" aria-haspopup="listbox" aria-controls={open ? 'completions' : undefined}
            aria-activedescendant={open && at >= 0 ? `completion-${at}` : undefined}
            onInput={(event) => (onChange(event.currentTarget.value), follow(), offer())} onKeyUp={follow} onClick={() => (follow(), close())} onBlur={close} onKeyDown={key}
          />
        </div>
        {open && <Completions list={offered.list} at={at} onPick={accept} />}
        <div class="hidden" role="status">{open ? `${offered.list.length} ${offered.list.length === 1 ? 'completion' : 'completions'}: ${offered.list[0].text}. Tab inserts it, arrow keys select.` : ''}</div>
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
          <p class="soft">Names without a value become inputs. Tab completes a word, Ctrl + Enter computes.</p>
        )}
      </div>
    </div>
  );
}

const Completions = ({ list, at, onPick }: { list: Suggestion[]; at: number; onPick: (suggestion: Suggestion) => void }) => (
  <div class="popup completions">
    <ul id="completions" role="listbox" aria-label="Completions">
      {list.map((each, i) => (
        <li id={`completion-${i}`} role="option" aria-selected={i === at} onPointerDown={(event) => event.preventDefault()} onClick={() => onPick(each)}>
          <span class="op-name mono">{each.text}</span>
          <span class="op-formula small soft">{each.note}</span>
          <span class="op-category soft">{each.kind}</span>
        </li>
      ))}
    </ul>
    <p class="popup-count">Tab inserts the first, ↑ ↓ and Enter another, Esc closes</p>
  </div>
);

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
