// Running and finished computations, one per selected device. Each is a job on the server; its event stream reports its
// stage and its position in the queue.
import { computed, signal } from '@preact/signals';
import { type Execution, get, type Job, parseJson, post, Problem, type ProblemBody, type Progress, send, Unreachable } from '../api';
import { announce } from '../parts/announcer';
import { problemFrom, sentence } from '../parts/problem';
import { formatSeconds, formatValue } from '../numbers';
import type { Program } from './program';
import { requestBody } from './program';
import { addToHistory, program } from './state';

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
  problem?: ProblemBody;
}

export const runs = signal<Run[]>([]);
export const isActive = (run: Run) => run.status === 'sending' || run.status === 'queued' || run.status === 'running';
export const active = computed(() => runs.value.some(isActive));
// The program at the time when Calculate was pressed.
export const computedProgram = signal<Program | undefined>(undefined);

let keys = 0;
const streams = new Map<number, EventSource>();

const change = (key: number, update: Partial<Run>) => {
  runs.value = runs.value.map((run) => (run.key === key ? { ...run, ...update } : run));
};
const find = (key: number) => runs.value.find((run) => run.key === key);

export function start() {
  const chosen = program.value;
  const requests = chosen.devices.length === 0 ? ['auto'] : chosen.devices;
  streams.forEach((stream) => stream.close());
  streams.clear();
  computedProgram.value = chosen;
  runs.value = requests.map((requested) => ({ key: ++keys, requested, status: 'sending', begun: performance.now(), stages: [], log: [] }));
  announce('Computing.');
  runs.value.forEach((run) => void begin(run, chosen));
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
  if (!run || !isActive(run)) return;
  try {
    const job = await get<Job>(`/api/jobs/${id}`);
    apply(key, job);
    if (isActive(find(key)!)) follow(key, job);
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
  if (!run || !isActive(run)) return;
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
  if (!run || !isActive(run)) return;
  streams.get(key)?.close();
  streams.delete(key);
  change(key, { ...update, ended: performance.now(), log: update.result?.status_log ?? update.problem?.status_log ?? run.log });
  const result = update.result;
  const first = result?.results[0];
  const comparison = first?.comparison;
  const outcome = update.status !== 'done' ? update.status! : !comparison || comparison.skipped ? 'not compared' : comparison.matches ? 'matches' : 'differs';
  if (result && first) announce(`${result.device.id}: ${formatValue(first.value, first.dtype)}, ${outcome}, ${formatSeconds(result.seconds)}.`);
  else announce(update.status === 'cancelled' ? 'Cancelled.' : `Failed. ${sentence(update.problem?.detail ?? '')}`);
  if (computedProgram.value) {
    addToHistory({
      program: computedProgram.value, outcome, device: result?.device.id ?? run.requested, seconds: result?.seconds ?? 0,
      value: first ? formatValue(first.value, first.dtype) : '',
    });
  }
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
