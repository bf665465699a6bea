// The calculator's state: the program, the server's check of it, the history.
import { computed, effect, signal } from '@preact/signals';
import { post, Problem, type ProblemBody, type Route, type Scalar } from '../api';
import { ops } from '../catalogue';
import { recall, remember } from '../storage';
import { fromHash, toHash } from './permalink';
import { asExpression, type Input, newProgram, type Program, repeatOf, requestBody } from './program';

export const program = signal<Program>(newProgram());
export const edit = (change: (now: Program) => Program) => (program.value = change(program.value));

// An op goes along when the user turns to expressions; the text that was carried over last may be replaced by the next one.
let carried: string | undefined;
export function chooseMode(mode: Program['mode']) {
  if (mode === program.value.mode) return;
  if (mode === 'op') return void edit((now) => ({ ...now, mode }));
  const next = asExpression(program.value, carried);
  if (next.expression !== program.value.expression) carried = next.expression;
  program.value = next;
}

// Called when the catalogue is loaded: restores the program from the address, else the last one, else add(1, 2).
export function restoreProgram() {
  const linked = fromHash(location.hash, newProgram());
  program.value = linked ?? { ...newProgram(), ...recall<Partial<Program>>('program', {}) };
}

// Browsers limit changes of the address, so it is updated a moment after the last key.
let addressTimer = 0;
effect(() => {
  if (ops.value.length === 0) return;
  const now = program.value;
  clearTimeout(addressTimer);
  addressTimer = window.setTimeout(() => {
    remember('program', { ...now, opInputs: now.opInputs.map(withoutFile), named: mapValues(now.named, withoutFile) });
    if (location.pathname === '/') history.replaceState(null, '', toHash(now));
  }, 120);
});

const withoutFile = (input: Input): Input => ({ ...input, file: undefined });
const mapValues = <T,>(object: Record<string, T>, change: (value: T) => T) =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));

// The address was changed by the user or by a link. By now it may have been overwritten with the program before.
addEventListener('hashchange', (event) => {
  const linked = fromHash(new URL(event.newURL).hash, newProgram());
  if (linked && toHash(linked) !== toHash(program.value)) program.value = linked;
});

export interface Checked {
  key: string; // the request it is about
  inputs?: { name: string; value: Scalar | null; sample_values: Scalar[] }[]; // as the device will receive them
  results?: { dtype: string; shape: number[]; elements: number; bytes: number }[];
  memory_bytes?: number;
  route?: Route | null;
  problem?: ProblemBody;
}
export const checked = signal<Checked | undefined>(undefined);

export const request = computed<{ key: string; body?: Record<string, unknown>; wrong?: string }>(() => {
  ops.value;
  try {
    const body = requestBody(program.value);
    repeatOf(program.value);
    return { key: JSON.stringify(body), body };
  } catch (error) {
    return { key: '', wrong: (error as Error).message };
  }
});

let pending: AbortController | undefined;
let timer = 0;

// The server infers shapes and locates errors while the user types, a moment after the last key.
effect(() => {
  const { key, body } = request.value;
  clearTimeout(timer);
  pending?.abort();
  if (!body || ops.value.length === 0) return;
  timer = window.setTimeout(() => check(key, body), 250);
});

async function check(key: string, body: Record<string, unknown>) {
  pending = new AbortController();
  try {
    const answer = await post<Checked>('/api/check', body, pending.signal);
    checked.value = { key, inputs: answer.inputs, results: answer.results, memory_bytes: answer.memory_bytes, route: answer.route };
  } catch (error) {
    if (error instanceof Problem && error.body.status !== 401) checked.value = { key, problem: error.body };
  }
}
