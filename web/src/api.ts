// The server's interface (docs/http.md): types, requests, errors.
import { signal } from '@preact/signals';

export type Scalar = number | string | boolean;

export interface OpParameter {
  name: string;
  type: 'number' | 'integer' | 'boolean' | 'integers' | 'dtype' | 'text';
  default: Scalar | number[] | null;
  required: boolean;
  min: number | null;
  max: number | null;
  range: string | null; // the bounds in words; null: no sensible value lies outside them
  choices: string[];
  doc: string;
}

export interface Op {
  name: string;
  aliases: string[];
  category: string;
  min_inputs: number;
  max_inputs: number; // -1: any number
  input_names: string[];
  dtypes: string[];
  parameters: OpParameter[];
  formula: string;
  doc: string;
  example: string;
}

export interface Catalogue {
  version: string;
  operations: Op[];
  limits: { elements: number; json_body_bytes: number; body_bytes: number; full_output_elements: number };
}

export interface Place {
  line: number;
  column: number;
  length: number;
  source_line: string;
}

export interface ProblemBody {
  status: number;
  title: string;
  detail: string;
  code: string;
  hint?: string;
  request_id?: string;
  input?: string;
  place?: Place;
  status_log?: string[];
  remaining_attempts?: number;
  locked_for_seconds?: number;
}

export interface Span {
  stage: string;
  start_seconds: number;
  seconds: number;
}

export interface Comparison {
  skipped?: string;
  matches: boolean;
  mismatches: number;
  max_abs: Scalar;
  max_rel: Scalar;
  max_ulp: Scalar;
  worst_index: number[] | null;
  worst_value: Scalar | null;
  worst_reference: Scalar | null;
  pcc: number | null;
  ulp_histogram: { edges: number[]; counts: number[] };
  nan: number;
  reference_nan: number;
  infinity: number;
  reference_infinity: number;
  tolerance: { ulp: number; relative_to_largest: number };
  reference_value: Scalar | null;
  reference_sample_values: Scalar[];
  reference_seconds: number;
}

// Some rows and columns of the matrix at index |at| of the other axes.
export interface Slice {
  at: number[];
  rows: number[];
  columns: number[];
  values: Scalar[][];
}

export interface Result {
  name: string;
  shape: number[];
  dtype: string;
  elements: number;
  bytes: number;
  value: Scalar | null;
  sample_values: Scalar[];
  statistics: Record<'min' | 'max' | 'mean' | 'deviation', Scalar | null> &
    Record<'nan' | 'positive_infinity' | 'negative_infinity' | 'zero', number> | null;
  histogram: { low: Scalar; high: Scalar; counts: number[] } | null;
  grid: Slice | null; // a sample of the first matrix
  comparison: Comparison | null;
}

// Why a device was chosen, and the predicted times of the others.
export interface Route {
  requested: string;
  device: string;
  reason: string;
  warning: string | null;
  considered: {
    device: string;
    eligible: boolean;
    remark: string | null;
    queue_seconds: number;
    open_seconds: number;
    compile_seconds: number;
    transfer_seconds: number;
    compute_seconds: number;
    predicted_seconds: number; // the sum of these
    measured: boolean;
    dollars: number | null;
  }[];
}

export interface Execution {
  success: boolean;
  request_id: string;
  device: { id: string; kind: string; name: string; simulated: boolean; tier?: string; tiers?: Record<string, string[]>; architecture?: string | null; firmware_version?: string | null; runtime?: string };
  route: Route | null;
  timeline: Span[];
  seconds: number;
  status_log: string[];
  status_log_seconds: number[]; // when each line was written, since the request began
  download: string | null;
  cost: { dollars: number; estimate: boolean } | null; // of this run; null: the device has no price
  inputs: { name: string; dtype: string; shape: number[]; bytes: number; value: Scalar; sample_values: Scalar[]; given_value?: Scalar | null }[];
  results: Result[];
}

export interface Progress {
  stage: string;
  device: string | null; // null: not chosen yet
  ahead_here: number;
  ahead_elsewhere: number;
  holder: string | null;
}

export interface Job {
  id: string;
  status: 'queued' | 'running' | 'done' | 'failed' | 'cancelled';
  location: string;
  events: string;
  device: string;
  progress: Progress | null;
  status_log: string[];
  seconds: number;
  result: Execution | null;
  problem: ProblemBody | null;
}

export interface Upload {
  id: string;
  name: string;
  bytes: number;
  tensors: { name: string; dtype: string; shape: number[] }[];
}

export interface DeviceStatus {
  state: string;
  reason: string | null;
  state_seconds: number;
  users: { who: string; holding: boolean; here: boolean; seconds: number }[];
  waiting: number;
  memory: { limit_bytes: number; used_bytes: number; peak_bytes: number; resident_tensors: number };
  policy: { name: string; threshold_seconds: number | string; break_even_seconds: number | string; cost_over_optimum: number | string };
  utilisation: number | null;
  efficiency: number | null;
  open_seconds: number;
  counters: Record<string, number>;
}

// What is not known is null.
export interface Device {
  id: string;
  kind: string;
  name: string;
  vendor: string | null;
  architecture: string | null;
  simulated: boolean;
  backends: string[];
  aliases: string[];
  available: boolean;
  reason: string | null;
  remedy: string | null;
  exclusive: boolean;
  memory_total_bytes: number | null;
  power_watts: number | null;
  temperature_celsius: number | null;
  cost_per_hour: number | null;
  cost_is_estimate: boolean;
  details: Record<string, string>;
  status: DeviceStatus | null;
}

// A vendor whose accelerators were looked for.
export interface Searched {
  id: string;
  vendor: string;
  found: boolean;
  text: string;
  remedy: string | null; // for a machine that has such a card
}

export interface DeviceEvent {
  id: number;
  kind: string;
  device: string;
  when: string;
  time: number;
  seconds: number;
  message: string | null;
  epoch: number;
  program: string | null;
  timeline: Span[];
  bytes: number;
}

export interface Session {
  required: boolean;
  authenticated: boolean;
  account?: string;
  expires_in_seconds?: number;
  idle_timeout_seconds?: number;
  locked_for_seconds?: number;
  remaining_attempts?: number;
}

export interface Policy {
  keep_open: string;
  worth: number;
  linger_seconds: number | null;
  quantum_seconds: number | null;
  min_hold_seconds: number | null;
  devices: { id: string; name: string; threshold_seconds: number; break_even_seconds: number; cost_over_optimum: number; state: string; reason: string | null }[];
}

export interface Ledger {
  enabled: boolean;
  reason?: string; // why not
  totals: { device: string; leases: number; held_seconds: number; compute_seconds: number; idle_seconds: number; open_seconds: number; cost_dollars: number | null }[];
  days: { day: string; device?: string; cost_dollars: number | null; held_seconds: number; compute_seconds: number }[];
  entries: { id: number; device: string; program: string; begin: string; end: string; held_seconds: number; compute_seconds: number; cost_dollars: number; outcome: string }[];
}

// An error returned by the server.
export class Problem extends Error {
  constructor(readonly body: ProblemBody) {
    super(body.detail || body.title);
  }
}

// The server could not be reached at all.
export class Unreachable extends Error {}

// Set after a 401 response; the page then shows its login.
export const loginNeeded = signal(false);
// Counts requests without a response; the connection banner watches it.
export const failures = signal(0);
export const lastContact = signal(Date.now());

// Integers beyond 2^53 stay strings, so that every digit is shown.
export function parseJson(text: string): unknown {
  return JSON.parse(text, function (this: unknown, _key: string, value: unknown, context?: { source?: string }) {
    const exact = typeof value === 'number' && context?.source && !Number.isSafeInteger(value) && /^-?\d+$/.test(context.source);
    return exact ? context.source : value;
  } as (key: string, value: unknown) => unknown);
}

// Puts the number |text| into a request body exactly as written: JavaScript's integers are exact only up to 2^53, and its JSON has no -0.
export const exactNumber = (text: string) => `\u0001${text}\u0001`;
export const toBody = (value: unknown) => JSON.stringify(value).replace(/"\\u0001(-?\d+(?:\.\d+)?)\\u0001"/g, '$1');

export async function send(path: string, options: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { cache: 'no-store', ...options });
  } catch (error) {
    if ((error as Error).name === 'AbortError') throw error;
    failures.value++;
    throw new Unreachable('The server does not respond.');
  }
  lastContact.value = Date.now();
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (response.status === 401 && path !== '/login') loginNeeded.value = true;
  throw new Problem(problem);
}

async function problemOf(response: Response): Promise<ProblemBody> {
  const fallback = { status: response.status, title: response.statusText, detail: `The server returned status ${response.status}.`, code: 'unknown' };
  try {
    return { ...fallback, ...(parseJson(await response.text()) as object) };
  } catch {
    return fallback;
  }
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return parseJson(await (await send(path, { signal })).text()) as T;
}

export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const headers = { 'Content-Type': 'application/json' };
  return parseJson(await (await send(path, { method: 'POST', headers, body: toBody(body), signal })).text()) as T;
}

export async function upload(file: File): Promise<Upload> {
  const headers = { 'Content-Type': 'application/octet-stream' };
  const response = await send(`/api/uploads?name=${encodeURIComponent(file.name)}`, { method: 'POST', headers, body: file });
  return parseJson(await response.text()) as Upload;
}
