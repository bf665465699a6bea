// Running and finished computations, one per selected device. Each is a job on the server; its event stream reports its
// stage and its position in the queue. Repeats are a second job, so that the first run keeps its own times.
import { computed, signal } from '@preact/signals';
import { type Execution, get, type Job, parseJson, post, Problem, type ProblemBody, type Progress, send, type Span, Unreachable } from '../api';
import { announce } from '../parts/announcer';
import { problemFrom, sentence } from '../parts/problem';
import { formatSeconds, formatValue } from '../numbers';
import { type Program, repeatOf, requestBody } from '../calculator/program';
import { edit, program } from '../calculator/state';
import { addToHistory } from './history';

export interface Run {
  key: number;
  requested: string;
  status: 'sending' | Job['status'];
  begun: number;
  ended?: number;
  job?: string;
  progress?: Progress;
  stages: { stage: string; at: number }[]; // as they were reported, for the time the run takes
  log: string[];
  result?: Execution;
  warm?: { runs: number; timeline: Span[]; seconds: number }; // the fastest of the repeats
  warming?: boolean;
  problem?: ProblemBody;
}

export const runs = signal<Run[]>([]);
// The run whose result is shown when there are several.
export const shownKey = signal(0);
const isWaiting = (run: Run) => run.status === 'sending' || run.status === 'queued' || run.status === 'running';
export const isActive = (run: Run) => isWaiting(run) || run.warming === true;
export const active = computed(() => runs.value.some(isActive));
// The program at the time when Calculate was pressed.
export const computedProgram = signal<Program | undefined>(undefined);
// Whether the form describes something else than what is shown.
export const hasChanged = computed(() => computedProgram.value !== undefined && requestKey(computedProgram.value) !== requestKey(program.value));

function requestKey(given: Program): string {
  try {
    return JSON.stringify(requestBody(given));
  } catch {
    return 'invalid';
  }
}

let keys = 0;
let recorded = true; // the computation on show is in the history
const streams = new Map<number, EventSource>();

const change = (key: number, update: Partial<Run>) => {
  runs.value = runs.value.map((run) => (run.key === key ? { ...run, ...update } : run));
};
const find = (key: number) => runs.value.find((run) => run.key === key);

// Sets up |next| and computes it.
export function compute(next: Program) {
  edit(() => next);
  if (!active.value) start();
}

export function start() {
  const chosen = program.value;
  const requests = chosen.devices.length === 0 ? ['auto'] : chosen.devices;
  streams.forEach((stream) => stream.close());
  streams.clear();
  computedProgram.value = chosen;
  recorded = false;
  runs.value = requests.map((requested) => ({ key: ++keys, requested, status: 'sending', begun: performance.now(), stages: [], log: [] }));
  shownKey.value = runs.value[0].key;
  announce('Computing.');
  runs.value.forEach((run) => void begin(run, chosen));
}

// Shows results of an earlier computation again, as long as this page has them.
export function showAgain(of: Program, results: Run[]) {
  computedProgram.value = of;
  recorded = true;
  runs.value = results;
  shownKey.value = results[0]?.key ?? 0;
}

async function begin(run: Run, chosen: Program) {
  try {
    const job = await post<Job>('/api/jobs', { ...requestBody(chosen, run.requested), keep: true });
    change(run.key, { job: job.id, status: job.status });
    apply(run.key, job);
    if (find(run.key)?.status === 'cancelled') void send(`/api/jobs/${job.id}`, { method: 'DELETE' });
    else follow(run.key, job);
  } catch (error) {
    finish(run.key, { status: 'failed', problem: problemFrom(error) });
  }
}

function follow(key: number, job: Job) {
  const stream = new EventSource(job.events);
  streams.set(key, stream);
  stream.addEventListener('progress', (event) => apply(key, parseJson((event as MessageEvent).data) as Job));
  // The values, before they have been compared with the reference.
  stream.addEventListener('result', (event) => {
    const early = parseJson((event as MessageEvent).data) as Job;
    apply(key, early);
    if (early.result) change(key, { result: early.result });
  });
  for (const end of ['done', 'failed', 'cancelled']) {
    stream.addEventListener(end, (event) => {
      if (!(event instanceof MessageEvent)) return;
      stream.close();
      apply(key, parseJson(event.data) as Job);
    });
  }
  stream.onerror = () => {
    stream.close();
    void poll(key, job.id, 0);
  };
}

// The stream broke: the job may still be there, or the server may have restarted.
async function poll(key: number, id: string, attempt: number) {
  const run = find(key);
  if (!run || !isWaiting(run)) return;
  try {
    const job = await get<Job>(`/api/jobs/${id}`);
    apply(key, job);
    if (isWaiting(find(key)!)) follow(key, job);
  } catch (error) {
    if (error instanceof Unreachable && attempt < 60) {
      setTimeout(() => void poll(key, id, attempt + 1), 1000);
    } else if (error instanceof Problem && error.body.status === 404) {
      const detail = 'The server restarted during this computation, and the result is lost.';
      finish(key, { status: 'failed', problem: { status: 404, title: '', code: 'unavailable', detail, hint: 'Compute it again.' } });
    } else {
      finish(key, { status: 'failed', problem: problemFrom(error) });
    }
  }
}

function apply(key: number, job: Job) {
  const run = find(key);
  if (!run || !isWaiting(run)) return;
  const stages = [...run.stages];
  const progress = job.progress ?? undefined;
  if (progress && stages.at(-1)?.stage !== progress.stage) {
    stages.push({ stage: progress.stage, at: performance.now() });
    if (progress.stage === 'queued') announce(placeText(progress));
  }
  change(key, { stages, progress: progress ?? run.progress, log: job.status_log?.length ? job.status_log : run.log });
  if (job.status === 'done') finish(key, { status: 'done', result: job.result! });
  else if (job.status === 'failed' || job.status === 'cancelled') finish(key, { status: job.status, problem: job.problem ?? undefined });
  else change(key, { status: job.status });
}

function finish(key: number, update: Partial<Run>) {
  const run = find(key);
  const chosen = computedProgram.value;
  if (!run || !isWaiting(run) || !chosen) return;
  streams.get(key)?.close();
  streams.delete(key);
  const repeats = update.status === 'done' ? repeatOf(chosen) - 1 : 0;
  change(key, { ...update, ended: performance.now(), warming: repeats > 0, log: update.result?.status_log ?? update.problem?.status_log ?? run.log });
  const done = find(key)!;
  const first = done.result?.results[0];
  if (done.result && first) announce(`${done.result.device.id}: ${formatValue(first.value, first.dtype)}, ${outcomeOf(done)}, ${formatSeconds(done.result.seconds)}.`);
  else announce(update.status === 'cancelled' ? 'Cancelled.' : `Failed. ${sentence(update.problem?.detail ?? '')}`);
  if (repeats > 0) void repeat(done, chosen, repeats);
  else record(chosen);
}

// The repeats on the device of the first run, which is open now and has the program compiled.
async function repeat(run: Run, chosen: Program, count: number) {
  let update: Partial<Run> = { warming: false };
  try {
    const job = await post<Job>('/api/jobs', { ...requestBody(chosen, run.result!.device.id), repeat: count, compare: false, details: false });
    change(run.key, { job: job.id });
    const done = await ended(job.id);
    if (done.status === 'done') update = { warming: false, warm: { runs: count, timeline: done.result!.timeline, seconds: done.result!.seconds } };
    else update = { warming: false, problem: done.problem ?? undefined };
  } catch (error) {
    update = { warming: false, problem: problemFrom(error) };
  }
  change(run.key, update);
  record(chosen);
}

async function ended(id: string): Promise<Job> {
  for (let wait = 20; ; wait = Math.min(wait * 1.5, 500)) {
    const job = await get<Job>(`/api/jobs/${id}`);
    if (job.status !== 'queued' && job.status !== 'running') return job;
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

export function outcomeOf(run: Run): string {
  const comparison = run.result?.results[0].comparison;
  if (run.status !== 'done') return run.status;
  return !comparison || comparison.skipped ? 'not compared' : comparison.matches ? 'matches' : 'differs';
}

// One entry for the whole computation, whatever the number of devices. Requests that never ran are none.
function record(chosen: Program) {
  if (recorded || active.value || computedProgram.value !== chosen) return;
  recorded = true;
  if (runs.value.every((run) => run.problem && [400, 404, 413].includes(run.problem.status) && !run.problem.status_log)) return;
  const outcomes = [...new Set(runs.value.map(outcomeOf))];
  const done = runs.value.find((run) => run.result);
  const first = done?.result?.results[0];
  addToHistory(
    {
      program: chosen, outcome: outcomes.join(', '), device: runs.value.map((run) => run.result?.device.id ?? run.requested).join(', '), seconds: done?.result?.seconds ?? 0,
      value: first ? formatValue(first.value, first.dtype) : '',
    },
    runs.value,
  );
}

export function cancel() {
  for (const run of runs.value) {
    if (!isActive(run)) continue;
    if (run.job) void send(`/api/jobs/${run.job}`, { method: 'DELETE' }).catch(() => undefined);
    else finish(run.key, { status: 'cancelled' });
  }
}

export function placeText(progress: Progress): string {
  const ahead = progress.ahead_here + progress.ahead_elsewhere;
  if (ahead === 0) return `Next in the queue for ${progress.device || 'the device'}.`;
  const who = [
    progress.ahead_here > 0 ? `${progress.ahead_here} on this server` : '',
    progress.ahead_elsewhere > 0 ? `${progress.ahead_elsewhere} in other programs` : '',
  ].filter(Boolean).join(', ');
  return `Position ${ahead + 1} in the queue for ${progress.device || 'the device'}: ${who} ahead of you.`;
}

// The time of one stage; 0 if there was none.
export const stageSeconds = (timeline: Span[], ...stages: string[]) => timeline.filter(({ stage }) => stages.includes(stage)).reduce((sum, { seconds }) => sum + seconds, 0);
