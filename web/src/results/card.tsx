// The result of one device: what was computed, its value, its times, and views of the whole tensor.
import { useState } from 'preact/hooks';
import { Download } from '../parts/icons';
import { ProblemNotice } from '../parts/problem';
import { TabPanel, Tabs } from '../parts/tabs';
import { formatBytes, formatMoney, formatSeconds, formatValue, shapeText } from '../numbers';
import { titleOf } from '../calculator/program';
import { edit } from '../calculator/state';
import { TensorView } from './tensor_view';
import { ErrorView, HistogramView } from './views';
import { active, computedProgram, hasChanged, isActive, outcomeOf, type Run, runs, start, stageSeconds } from './runs';
import { LiveStages, TimeBar } from './stages';

type View = 'table' | 'heat' | 'histogram' | 'errors' | 'inputs' | 'log';
const kViews: { id: View; label: string }[] = [
  { id: 'table', label: 'Table' }, { id: 'heat', label: 'Heat map' }, { id: 'histogram', label: 'Histogram' }, { id: 'errors', label: 'Errors' },
  { id: 'inputs', label: 'Inputs' }, { id: 'log', label: 'Log' },
];

export function ResultCard({ run }: { run: Run }) {
  const device = run.result?.device;
  const place = device?.id ?? (run.progress?.device || (run.requested !== 'auto' ? run.requested : isActive(run) ? 'Choosing a device' : 'Not computed'));
  const alone = runs.value.length === 1;
  return (
    <article class={`card result stack ${hasChanged.value ? 'old' : ''}`} aria-label={`Result on ${place}`} aria-busy={isActive(run)}>
      <header class="stack tight">
        {alone && <ComputedTitle />}
        <p class="row">
          <span class="mono device-name">{place}</span>
          {device && <span class="small soft">{device.name}</span>}
          {device?.simulated && <span class="tag warn">simulated</span>}
          <span class="end">
            <Verdict run={run} />
          </span>
        </p>
      </header>
      {alone && <Changed />}
      {isActive(run) && !run.warming && !run.result && <LiveStages run={run} />}
      {run.problem && <ProblemNotice problem={run.problem} />}
      {!run.problem && run.status === 'cancelled' && <p class="notice warn">Cancelled.</p>}
      {run.result ? <Outcome key={run.key} run={run} /> : !isActive(run) && run.log.length > 0 && <Log lines={run.log} />}
    </article>
  );
}

export const ComputedTitle = () => <h2 class="mono break computed">{computedProgram.value ? titleOf(computedProgram.value) : ''}</h2>;

// The form is no longer what the result is of.
export function Changed() {
  if (!hasChanged.value || active.value) return null;
  return (
    <div class="notice warn row" role="status">
      <span>The form has changed since this was computed.</span>
      <span class="row end">
        <button type="button" onClick={start}>
          Update the result
        </button>
        <button type="button" onClick={() => edit(() => computedProgram.value!)}>
          Restore the form
        </button>
      </span>
    </div>
  );
}

export function Verdict({ run, short }: { run: Run; short?: boolean }) {
  if (isActive(run)) return <span class="tag accent">{run.warming ? 'repeating' : run.result ? 'comparing' : run.status === 'queued' ? 'queued' : 'running'}</span>;
  switch (outcomeOf(run)) {
    case 'cancelled': return <span class="tag warn">cancelled</span>;
    case 'failed': return <span class="tag bad">failed</span>;
    case 'not compared': return <span class="tag">not compared</span>;
  }
  const matches = run.result!.results.every(({ comparison }) => !comparison || comparison.skipped || comparison.matches);
  const from = short ? '' : matches ? ' the reference' : ' from the reference';
  return matches ? <span class="tag good">✓ matches{from}</span> : <span class="tag bad">✗ differs{from}</span>;
}

function Outcome({ run }: { run: Run }) {
  const execution = run.result!;
  const [view, setView] = useState<View>('table');
  const [index, setIndex] = useState(0);
  const result = execution.results[Math.min(index, execution.results.length - 1)];
  const comparison = result.comparison && !result.comparison.skipped ? result.comparison : undefined;
  const prefix = `run-${run.key}`;
  return (
    <>
      {execution.results.length > 1 && (
        <div class="field">
          <label for={`${prefix}-which`}>Result</label>
          <select id={`${prefix}-which`} value={String(index)} onChange={(event) => setIndex(Number(event.currentTarget.value))}>
            {execution.results.map((each, i) => (
              <option value={String(i)}>{`${each.name}: ${each.dtype} ${shapeText(each.shape)}`}</option>
            ))}
          </select>
        </div>
      )}
      <dl class="values">
        <div>
          <dt>{result.elements === 1 ? 'Value' : 'First value'}</dt>
          <dd class="big number">{formatValue(result.value, result.dtype)}</dd>
          <dd class="small soft">
            {shapeText(result.shape)} · {result.dtype} · {formatBytes(result.bytes)}
          </dd>
        </div>
        {comparison && (
          <div>
            <dt>Reference</dt>
            <dd class="big number">{formatValue(comparison.reference_value, 'float64')}</dd>
            <dd class="small soft">
              {/float/.test(result.dtype) ? 'computed in float64' : 'computed exactly'}, in {formatSeconds(comparison.reference_seconds)}
            </dd>
          </div>
        )}
      </dl>
      <TimeBar timeline={execution.timeline} seconds={execution.seconds} />
      <Times run={run} />
      <Tabs label="Views of the result" prefix={prefix} tabs={kViews} chosen={view} onChoose={setView} />
      <TabPanel prefix={prefix} chosen={view}>
        {(view === 'table' || view === 'heat') && <TensorView key={`${prefix}-${index}`} result={result} index={index} download={execution.download} view={view} prefix={prefix} />}
        {view === 'histogram' && <HistogramView result={result} />}
        {view === 'errors' && <ErrorView comparison={result.comparison} result={result} isPending={isActive(run) && !run.warming} />}
        {view === 'inputs' && <InputsView run={run} />}
        {view === 'log' && <Log lines={run.log} seconds={execution.status_log_seconds} />}
      </TabPanel>
      {execution.download && (
        <div class="row">
          {!/_b$/.test(result.dtype) && (
            <a class="button" href={`${execution.download}?format=npy&index=${index}`} download>
              <Download /> Download .npy
            </a>
          )}
          <a class="button plain" href={`${execution.download}?format=safetensors`} download>
            .safetensors
          </a>
        </div>
      )}
    </>
  );
}

// What the first run paid once, and what the fastest repeat took.
function Times({ run }: { run: Run }) {
  const { timeline, cost, device } = run.result!;
  const once = stageSeconds(timeline, 'opening', 'compiling');
  const driven = [device.runtime && `TTNN ${device.runtime}`, device.architecture, device.firmware_version && `firmware ${device.firmware_version}`].filter(Boolean);
  const where =
    device.tier === 'mixed'
      ? `both tiers, ${Object.entries(device.tiers ?? {}).map(([tier, ops]) => `${tier}: ${ops.join(', ')}`).join('; ')}`
      : `the ${device.tier} tier`;
  const told = [
    device.tier ? `Computed in ${where}${driven.length > 0 ? ` (${driven.join(', ')})` : ''}.` : '',
    once > 0.01 ? `Opening and compiling took ${formatSeconds(once)}; the next run of this program is faster by that as long as the device stays open.` : '',
    run.warm ? `Fastest of ${run.warm.runs} ${run.warm.runs === 1 ? 'repeat' : 'repeats'}: ${formatSeconds(stageSeconds(run.warm.timeline, 'computing'))} computing.` : '',
    cost && cost.dollars > 0 ? `Cost of this run: ${formatMoney(cost.dollars)}${cost.estimate ? ', by an estimated price' : ''}.` : '',
  ].filter(Boolean);
  return told.length === 0 ? null : <p class="small soft">{told.join(' ')}</p>;
}

// The inputs as the device received them, after rounding.
function InputsView({ run }: { run: Run }) {
  const inputs = run.result!.inputs ?? [];
  if (inputs.length === 0) return <p class="soft">This computation has no inputs.</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Inputs as the device received them">
      <table>
        <thead>
          <tr>
            <th scope="col">Input</th>
            <th scope="col">Shape</th>
            <th scope="col">Data type</th>
            <th scope="col">As stored, the first values</th>
          </tr>
        </thead>
        <tbody>
          {inputs.map((input) => (
            <tr>
              <td class="mono">{input.name}</td>
              <td>{shapeText(input.shape)}</td>
              <td>{input.dtype}</td>
              <td class="number left">
                {input.sample_values.map((value) => formatValue(value, input.dtype)).join(', ')}
                {input.shape.reduce((product, extent) => product * extent, 1) > input.sample_values.length && ' …'}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const Log = ({ lines, seconds = [] }: { lines: string[]; seconds?: number[] }) => (
  <ol class="log mono" aria-label="Log">
    {lines.map((line, i) => (
      <li>
        {seconds.length === lines.length && <span class="soft log-time">{formatSeconds(seconds[i])}</span>}
        {line}
      </li>
    ))}
  </ol>
);
