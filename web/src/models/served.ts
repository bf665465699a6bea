// The models of the server (docs/http.md, Models): types, and the list as it changes.
import { signal } from '@preact/signals';
import { get, type Route } from '../api';

export interface ModelValue {
  name: string;
  type: string;
  dtype: string | null; // null: not a tensor of numbers
  optional: boolean;
  shape: (number | string)[]; // a text: any extent, with its name
}

export interface ServedModel {
  name: string;
  version: string;
  file_bytes: number;
  text: boolean; // it has a tokenizer
  sent: boolean; // by this client
  generates: boolean; // a language model
  generation?: Generation;
  state: 'unloaded' | 'loading' | 'ready' | 'failed' | 'stopped';
  problem: string | null;
  resident_bytes: number;
  load_seconds: number;
  batched: boolean;
  padded: boolean;
  batching: string;
  max_batch_size: number;
  latency_objective_ms: number;
  waiting: number;
  running: number;
  departed: number;
  late: number;
  refused: number;
  tokens: number;
  padded_tokens: number;
  inferences: number;
  executions: number;
  failures: number;
  queue_seconds: number;
  compute_seconds: number;
  batches: { rows: number; count: number; seconds: number }[];
  info: ModelInfo | null;
}

export interface Generation {
  waiting: number;
  running: number;
  requests: number;
  failures: number;
  prompt_tokens: number;
  tokens: number;
  chat_format?: string; // once it is in memory; '': prompts only
  context?: number;
  device?: string;
}

export interface ModelInfo {
  format: string;
  producer: string | null;
  opset: number;
  nodes: number;
  parameters: number;
  weight_bytes: number;
  inputs: ModelValue[];
  outputs: ModelValue[];
  ops: Record<string, number>;
}

export interface ModelDetails {
  model: ServedModel;
  route: Route | null;
}

export const models = signal<ServedModel[] | undefined>(undefined);
export const hasFolder = signal(true);

export async function refresh(): Promise<void> {
  const answer = await get<{ folder: boolean; models: ServedModel[] }>('/api/models');
  models.value = answer.models;
  hasFolder.value = answer.folder;
}

export const valueText = (value: ModelValue) => `${value.name}: ${value.type} [${value.shape.map((each) => (each === '' ? '?' : each)).join(', ')}]`;

// How many tokens of the batches were padding.
export const paddingShare = (model: ServedModel) => (model.padded_tokens > 0 ? 1 - model.tokens / model.padded_tokens : null);
