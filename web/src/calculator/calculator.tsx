// The calculator: the setup on the left, the results on the right.
import { useState } from 'preact/hooks';
import type { Op, ProblemBody } from '../api';
import { findOp, ops } from '../catalogue';
import { Code, Link } from '../parts/icons';
import { CopyButton } from '../parts/copy_button';
import { sentence } from '../parts/problem';
import { TabPanel, Tabs } from '../parts/tabs';
import { formatBytes, shapeText } from '../numbers';
import { kDTypes } from '../quantise';
import { CodeDialog } from '../code/code_dialog';
import { ResultCard } from '../results/card';
import { History } from '../results/history_list';
import { active, cancel, compute, runs, start } from '../results/runs';
import { SideBySide } from '../results/side_by_side';
import { DevicePicker } from './device_picker';
import { ExpressionEditor } from './expression_editor';
import { InputEditor } from './input_editor';
import { OpSearch } from './op_search';
import { Parameters } from './parameters';
import { fromHash, toHash } from './permalink';
import { inputName, inputsOf, newInput, type Program, withInput, withOp } from './program';
import { type Checked, checked, chooseMode, edit, program, request } from './state';
import './calculator.css';
import '../results/results.css';

export function Calculator() {
  if (ops.value.length === 0) return <p class="empty" role="status">Loading the catalogue …</p>;
  return (
    <div class="calculator">
      <h1 class="hidden">Calculator</h1>
      <Setup />
      <section class="outcome stack" aria-label="Results">
        {runs.value.length === 0 && <Welcome />}
        {runs.value.length > 1 ? <SideBySide /> : runs.value.map((run) => <ResultCard key={run.key} run={run} />)}
        <History />
      </section>
    </div>
  );
}

function Setup() {
  const now = program.value;
  const [showsCode, setShowsCode] = useState(false);
  const op = findOp(now.op);
  const { wrong, key } = request.value;
  const verdict = checked.value?.key === key ? checked.value : undefined;
  const submit = (event?: Event) => {
    event?.preventDefault();
    if (!active.value && !wrong) start();
  };
  return (
    <>
      <form class="card setup stack" onSubmit={submit} onKeyDown={(event) => event.key === 'Enter' && (event.ctrlKey || event.metaKey) && submit(event)} aria-label="Computation" noValidate>
        <Tabs
          label="What to compute" prefix="mode" tabs={[{ id: 'op', label: 'Operation' }, { id: 'expression', label: 'Expression' }]} chosen={now.mode}
          onChoose={chooseMode}
        />
        <TabPanel prefix="mode" chosen={now.mode}>
          <div class="stack">
            {now.mode === 'op' ? (
              <>
                <OpSearch chosen={now.op} onChoose={(name) => edit((old) => withOp(old, name))} />
                {op ? <About op={op} /> : <p class="wrong">Unknown operation '{now.op}'.</p>}
              </>
            ) : (
              <ExpressionEditor
                value={now.expression} place={verdict?.problem?.place} problem={verdict?.problem && !verdict.problem.input ? inWords(verdict.problem) : undefined}
                onChange={(expression) => edit((old) => ({ ...old, expression }))}
              />
            )}
            <Inputs now={now} op={now.mode === 'op' ? op : undefined} stored={verdict?.inputs} about={verdict?.problem?.input} detail={verdict?.problem?.detail} />
            {now.mode === 'op' && op && <Parameters op={op} values={now.parameters} onChange={(name, text) => edit((old) => ({ ...old, parameters: { ...old.parameters, [name]: text } }))} />}
          </div>
        </TabPanel>
        <DevicePicker />
        <div class="actions">
          <Forecast wrong={wrong} />
          <button type="submit" class="primary" disabled={wrong !== undefined} aria-disabled={active.value}>
            {active.value ? 'Computing …' : 'Calculate'}
          </button>
          <button type="button" onClick={cancel} disabled={!active.value}>
            Cancel
          </button>
          <span class="end row">
            <button type="button" class="plain" onClick={() => setShowsCode(true)}>
              <Code /> Code
            </button>
            <CopyButton plain label="Copy link" text={() => `${location.origin}/${toHash(program.value)}`} />
          </span>
        </div>
      </form>
      {showsCode && <CodeDialog onClose={() => setShowsCode(false)} />}
    </>
  );
}

// The place is shown before the text; the server's text repeats it.
const bare = (detail: string) => detail.replace(/^(line \d+, )?column \d+: /, '');
const inWords = ({ detail, hint }: ProblemBody) => sentence(bare(detail)) + (hint ? ` ${sentence(hint)}` : '');

function About({ op }: { op: Op }) {
  const tryIt = () => compute({ ...program.value, mode: 'expression', expression: op.example });
  return (
    <div class="about">
      <p class="mono formula break">{op.formula}</p>
      <p class="small soft">
        {op.doc} {op.aliases.length > 0 && <>Also called {op.aliases.join(', ')}.</>}
      </p>
      <p class="small">
        <button type="button" class="plain small example" onClick={tryIt} title="Compute this example">
          <span class="mono">{op.example}</span>
        </button>
      </p>
    </div>
  );
}

function Inputs({ now, op, stored, about, detail }: { now: Program; op?: Op; stored?: Checked['inputs']; about?: string; detail?: string }) {
  const list = inputsOf(now);
  const more = op && (op.max_inputs < 0 || list.length < op.max_inputs);
  const add = () => edit((old) => ({ ...old, opInputs: [...old.opInputs, newInput({ dtype: old.opInputs[0]?.dtype ?? 'float32', shape: old.opInputs[0]?.shape ?? '4, 4' })] }));
  const remove = (index: number) => edit((old) => ({ ...old, opInputs: old.opInputs.filter((_, i) => i !== index) }));
  return (
    <>
      {list.map(({ name, input }, index) => (
        <InputEditor
          key={`${now.mode}-${name}`} stored={stored?.find((each) => each.name === name)?.sample_values} name={name} index={index} input={input} dtypes={op && index === 0 ? op.dtypes : kDTypes} problem={about === name ? detail : undefined}
          onChange={(change) => edit((old) => withInput(old, index, change))}
          onRemove={op && list.length > op.min_inputs && index === list.length - 1 ? () => remove(index) : undefined}
        />
      ))}
      {more && (
        <p>
          <button type="button" onClick={add}>
            Add input {inputName(op, list.length)}
          </button>
        </p>
      )}
    </>
  );
}

// The shape of the result, or the error, before anything runs.
function Forecast({ wrong }: { wrong?: string }) {
  const { key } = request.value;
  const verdict = checked.value?.key === key ? checked.value : undefined;
  const problem = wrong ? sentence(wrong) : verdict?.problem && !verdict.problem.place ? sentence(verdict.problem.detail) : undefined;
  const hint = problem && !wrong && verdict?.problem?.hint ? ` ${sentence(verdict.problem.hint)}` : '';
  return (
    <p class={`forecast small ${problem || verdict?.problem ? 'wrong' : 'soft'}`} aria-live="polite">
      {problem ? problem + hint : verdict?.problem ? 'The expression has an error.' : verdict?.results?.length ? `Gives ${verdict.results.map((each) => `${shapeText(each.shape)} ${each.dtype}, ${formatBytes(each.bytes)}`).join('; ')}.` : '\u00a0'}
    </p>
  );
}

// Examples to start from, each as an address.
const kStarters: [string, string][] = [
  ['GELU of noise', 'op=gelu&i.x=random:normal:1:0:2&i.x.shape=32,32&i.x.dtype=bfloat16'],
  ['Product of matrices', 'op=matmul&i.a=random:uniform:1:-1:1&i.a.shape=64,64&i.a.dtype=float32&i.b=random:uniform:2:-1:1&i.b.shape=64,64&i.b.dtype=float32'],
  ['Attention scores', 'expr=softmax(q @ k.T / sqrt(64), axis=-1)&i.q=random:normal:1:0:1&i.q.shape=16,64&i.q.dtype=float32&i.k=random:normal:2:0:1&i.k.shape=16,64&i.k.dtype=float32'],
  ['Rounding error of 4 bits', 'expr=x - cast(cast(x, bfloat4_b), float32)&i.x=random:normal:1:0:1&i.x.shape=32,32&i.x.dtype=float32'],
];

const Welcome = () => (
  <div class="empty">
    <p>The result appears here, with its values, its error against the reference, and where the time went. An example to begin with:</p>
    <div class="starters">
      {kStarters.map(([title, hash]) => (
        <button type="button" onClick={() => compute(fromHash(hash, program.value) ?? program.value)}>
          {title}
        </button>
      ))}
    </div>
    <p class="small">
      <Link /> The address of this page always encodes the current setup, so you can share it.
    </p>
  </div>
);
