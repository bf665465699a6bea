// The result of one device.
import { useState } from 'preact/hooks';
import { Download } from '../parts/icons';
import { ProblemNotice } from '../parts/problem';
import { TabPanel, Tabs } from '../parts/tabs';
import { formatBytes, formatValue, shapeText } from '../numbers';
import { ErrorView, HeatMap, HistogramView, TableView } from './result_views';
import { isActive, type Run } from './runs';
import { LiveStages, TimeBar } from './stages';

type View = 'table' | 'heat' | 'histogram' | 'errors' | 'inputs' | 'log';
const kViews: { id: View; label: string }[] = [
  { id: 'table', label: 'Table' }, { id: 'heat', label: 'Heat map' }, { id: 'histogram', label: 'Histogram' }, { id: 'errors', label: 'Errors' },
  { id: 'inputs', label: 'Inputs' }, { id: 'log', label: 'Log' },
];

export function ResultCard({ run }: { run: Run }) {
  const device = run.result?.device;
  const title = device?.id ?? (run.progress?.device || (run.requested !== 'auto' ? run.requested : isActive(run) ? 'Choosing a device' : 'Not computed'));
  return (
    <article class="card result stack" aria-label={`Result on ${title}`} aria-busy={isActive(run)}>
      <header class="row">
        <h2 class="mono">{title}</h2>
        {device && <span class="small soft">{device.name}</span>}
        {device?.simulated && <span class="tag warn">simulated</span>}
        <span class="end">
          <Verdict run={run} />
        </span>
      </header>
      {isActive(run) && <LiveStages run={run} />}
      {run.problem && <ProblemNotice problem={run.problem} />}
      {!run.problem && run.status === 'cancelled' && <p class="notice warn">Cancelled.</p>}
      {run.result ? <Outcome run={run} /> : !isActive(run) && run.log.length > 0 && <Log lines={run.log} />}
    </article>
  );
}

function Verdict({ run }: { run: Run }) {
  if (isActive(run)) return <span class="tag accent">{run.status === 'queued' ? 'queued' : 'running'}</span>;
  if (run.status === 'cancelled') return <span class="tag warn">cancelled</span>;
  if (run.status === 'failed') return <span class="tag bad">failed</span>;
  const compared = run.result!.results.map((result) => result.comparison).filter((comparison) => comparison && !comparison.skipped);
  if (compared.length === 0) return <span class="tag">not compared</span>;
  return compared.every((comparison) => comparison!.matches) ? <span class="tag good">✓ matches the reference</span> : <span class="tag bad">✗ differs from the reference</span>;
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
              <option value={String(i)}>{`${i + 1}: ${each.name}, ${each.dtype} ${shapeText(each.shape)}`}</option>
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
            <dd class="small soft">{shapeText(result.shape)} · computed in float64</dd>
          </div>
        )}
      </dl>
      <TimeBar timeline={execution.timeline} seconds={execution.seconds} />
      <Tabs label="Views of the result" prefix={prefix} tabs={kViews} chosen={view} onChoose={setView} />
      <TabPanel prefix={prefix} chosen={view}>
        {view === 'table' && <TableView result={result} />}
        {view === 'heat' && <HeatMap result={result} />}
        {view === 'histogram' && <HistogramView result={result} />}
        {view === 'errors' && <ErrorView comparison={result.comparison} result={result} />}
        {view === 'inputs' && <InputsView run={run} />}
        {view === 'log' && <Log lines={run.log} />}
      </TabPanel>
      {execution.download && (
        <div class="row">
          <a class="button" href={`${execution.download}?format=npy&index=${index}`} download>
            <Download /> Download .npy
          </a>
          <a class="button plain" href={`${execution.download}?format=safetensors`} download>
            .safetensors
          </a>
        </div>
      )}
    </>
  );
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
            <th scope="col">As stored</th>
          </tr>
        </thead>
        <tbody>
          {inputs.map((input) => (
            <tr>
              <td class="mono">{input.name}</td>
              <td>{shapeText(input.shape)}</td>
              <td>{input.dtype}</td>
              <td class="number left">
                {input.sample_values.slice(0, 4).map((value) => formatValue(value, 'float64')).join(', ')}
                {input.sample_values.length > 4 && ' …'}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const Log = ({ lines }: { lines: string[] }) => (
  <ol class="log mono" aria-label="Log">
    {lines.map((line) => (
      <li>{line}</li>
    ))}
  </ol>
);
