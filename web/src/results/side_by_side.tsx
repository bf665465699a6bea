// Several devices side by side: one column each, whatever became of it, and the full result of the one that is selected.
import type { ComponentChildren } from 'preact';
import { formatError, formatMoney, formatSeconds, formatValue } from '../numbers';
import { sentence } from '../parts/problem';
import { TabPanel, Tabs } from '../parts/tabs';
import { Changed, ComputedTitle, ResultCard, Verdict } from './card';
import { isActive, type Run, runs, shownKey, stageSeconds } from './runs';
import { stageName } from './stages';

export function SideBySide() {
  const all = runs.value;
  const shown = all.find((run) => run.key === shownKey.value) ?? all[0];
  return (
    <>
      <section class="card stack tight" aria-labelledby="side-title">
        <h2 id="side-title" class="label">Side by side</h2>
        <ComputedTitle />
        <Changed />
        <div class="scroll" tabIndex={0} role="region" aria-label="Comparison of devices">
          <Comparison all={all} />
        </div>
      </section>
      <Tabs
        label="Device whose result is shown" prefix="side" tabs={all.map((run) => ({ id: String(run.key), label: idOf(run) }))} chosen={String(shown.key)}
        onChoose={(key) => (shownKey.value = Number(key))}
      />
      <TabPanel prefix="side" chosen={String(shown.key)}>
        <ResultCard key={shown.key} run={shown} />
      </TabPanel>
    </>
  );
}

const idOf = (run: Run) => run.result?.device.id ?? run.progress?.device ?? run.requested;
const computing = (run: Run) => (run.warm ? stageSeconds(run.warm.timeline, 'computing') : run.result ? stageSeconds(run.result.timeline, 'computing') : NaN);

function Comparison({ all }: { all: Run[] }) {
  const fastest = Math.min(...all.map(computing).filter(Number.isFinite));
  const repeats = Math.max(...all.map((run) => run.warm?.runs ?? 0));
  const priced = all.some((run) => (run.result?.cost?.dollars ?? 0) > 0);
  const row = (name: string, cell: (run: Run) => ComponentChildren, number = true, isPart = false) => (
    <tr>
      <th scope="row" class={isPart ? 'part' : ''}>{name}</th>
      {all.map((run) => (
        <td class={number ? 'number' : ''}>{cell(run)}</td>
      ))}
    </tr>
  );
  const part = (name: string, cell: (run: Run) => ComponentChildren) => row(name, cell, true, true);
  const done = (cell: (run: Run) => ComponentChildren) => (run: Run) => (run.result ? cell(run) : '–');
  return (
    <table class="side-table">
      <thead>
        <tr>
          <th scope="col">
            <span class="hidden">Figure</span>
          </th>
          {all.map((run) => (
            <th scope="col" class="mono">
              {idOf(run)}
              {run.result?.device.simulated && ' '}
              {run.result?.device.simulated && <span class="tag warn">simulated</span>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {row('Outcome', (run) => <Outcome run={run} />, false)}
        {row('First values', done(({ result }) => result!.results[0].sample_values.slice(0, 3).map((value) => <div>{formatValue(value, result!.results[0].dtype)}</div>)))}
        {row('Largest error, ULP', done(({ result }) => errorText(result!.results[0].comparison)))}
        {row('First run, total', done(({ result }) => formatSeconds(result!.seconds)))}
        {part('Waiting and opening', done(({ result }) => formatSeconds(stageSeconds(result!.timeline, 'queued', 'opening'))))}
        {part('Compiling', done(({ result }) => formatSeconds(stageSeconds(result!.timeline, 'compiling'))))}
        {part('Moving data', done(({ result }) => formatSeconds(stageSeconds(result!.timeline, 'uploading', 'downloading'))))}
        {part('Computing', done(({ result }) => formatSeconds(stageSeconds(result!.timeline, 'computing'))))}
        {repeats > 0 && row(`Computing again, fastest of ${repeats}`, (run) => (run.warm ? formatSeconds(computing(run)) : '–'))}
        {row(repeats > 0 ? 'Computing again, relative' : 'Computing, relative', done((run) => `${(computing(run) / fastest).toFixed(1)} ×`))}
        {priced && row('Cost of the first run', done(({ result }) => (result!.cost?.dollars ? formatMoney(result!.cost.dollars) : '–')))}
      </tbody>
    </table>
  );
}

const errorText = (comparison: NonNullable<Run['result']>['results'][number]['comparison']) => (comparison && !comparison.skipped ? formatError(comparison.max_ulp) : '–');

function Outcome({ run }: { run: Run }) {
  const stage = run.progress && isActive(run) && !run.warming ? stageName(run.progress.stage) : '';
  return (
    <>
      <Verdict run={run} short />
      {stage && <div class="small soft">{stage}</div>}
      {run.problem && run.status !== 'cancelled' && <div class="small wrong break">{sentence(run.problem.detail)}</div>}
    </>
  );
}
