// The user's setup: an op or an expression, its inputs and parameters, the devices. A plain value, used for the
// history, the address and requests.
import { exactNumber, type Op, type OpParameter, type Upload } from '../api';
import { findOp } from '../catalogue';
import { freeNames } from '../expression';
import { parseNumber, parseShape } from '../numbers';
import { parseTensor } from '../tensor_text';

export const kSources = ['constant', 'list', 'random', 'range', 'eye', 'paste', 'file'] as const;
export type Source = (typeof kSources)[number];

export interface Input {
  kind: 'tensor' | 'scalar';
  source: Source;
  dtype: string;
  shape: string;
  value: string; // constant, scalar
  list: string;
  paste: string;
  distribution: 'uniform' | 'normal';
  seed: string;
  first: string; // low or mean
  second: string; // high or deviation
  start: string;
  step: string;
  file?: Upload;
  tensor: string; // of a file with several
}

export interface Program {
  mode: 'op' | 'expression';
  op: string;
  expression: string;
  opInputs: Input[];
  named: Record<string, Input>;
  parameters: Record<string, string>; // as typed; absent: the default
  devices: string[]; // empty: auto
  choice: string; // how auto chooses: '' as the server is set, 'fastest', 'cheapest', or 'prefer:gpu'
  repeat: string; // as typed: how often to run
}

export const newInput = (change: Partial<Input> = {}): Input => ({
  kind: 'tensor', source: 'constant', dtype: 'bfloat16', shape: '32, 32', value: '1', list: '1, 2, 3, 4', paste: '', distribution: 'uniform',
  seed: '1', first: '0', second: '1', start: '0', step: '1', tensor: '', ...change,
});

export const kFirstExpression = 'softmax(a @ b / sqrt(64))';

export function newProgram(): Program {
  return withOp({ mode: 'op', op: '', expression: kFirstExpression, opInputs: [], named: {}, parameters: {}, devices: [], choice: '', repeat: '1' }, 'add');
}

// Inputs of integer-only ops default to integers.
export function defaultDType(op: Op): string {
  const usual = ['bfloat16', 'float32', 'int32', 'uint8', 'bool'];
  return usual.find((dtype) => op.dtypes.includes(dtype)) ?? op.dtypes[0] ?? 'float32';
}

// The same program with another op: keeps compatible inputs and drops parameters.
export function withOp(program: Program, name: string): Program {
  const op = findOp(name);
  if (!op) return { ...program, op: name };
  const usual = defaultDType(op);
  const fits = (dtype: string) => op.dtypes.length === 0 || op.dtypes.includes(dtype);
  const count = Math.max(op.min_inputs, Math.min(program.opInputs.length, op.max_inputs < 0 ? 2 : op.max_inputs), op.max_inputs < 0 ? 2 : 0);
  const opInputs = Array.from({ length: count }, (_, i) => {
    const input = program.opInputs[i] ?? startingInput(op, i, usual);
    return fits(input.dtype) || input.source === 'file' ? input : { ...input, dtype: usual };
  });
  return { ...program, mode: 'op', op: op.name, opInputs, parameters: {} };
}

function startingInput(op: Op, i: number, dtype: string): Input {
  const name = inputName(op, i);
  const conv = op.category === 'convolution' || op.category === 'pooling';
  const integers = /^(indices|index|labels?|targets?)$/.test(name);
  if (integers) return newInput({ dtype: 'int64', source: 'list', list: '0, 1', shape: '' });
  if (conv) {
    const axes = /3d/.test(op.name) ? 3 : /1d/.test(op.name) ? 1 : 2;
    const shape = name === 'bias' ? [1] : i === 0 ? [1, 1, ...Array(axes).fill(8)] : [1, 1, ...Array(axes).fill(3)];
    return newInput({ dtype, source: 'random', shape: shape.join(', '), seed: String(i + 1) });
  }
  return newInput({ dtype, value: String(i + 1), seed: String(i + 1) });
}

export const inputName = (op: Op, i: number) => op.input_names[i] ?? (op.input_names.length === 1 ? `${op.input_names[0]}${i + 1}` : `x${i + 1}`);

// The inputs to be shown, with their names.
export function inputsOf(program: Program): { name: string; input: Input }[] {
  if (program.mode === 'op') {
    const op = findOp(program.op);
    return op ? program.opInputs.map((input, i) => ({ name: inputName(op, i), input })) : [];
  }
  return freeNames(program.expression).map((name, i) => ({ name, input: program.named[name] ?? namedInput(i) }));
}

// Each input gets a different seed, because equal tensors would make a poor example.
const namedInput = (i: number) => newInput({ dtype: 'float32', source: 'random', shape: '4, 4', seed: String(i + 1) });

export function withInput(program: Program, index: number, change: Partial<Input>): Program {
  if (program.mode === 'op') {
    return { ...program, opInputs: program.opInputs.map((input, i) => (i === index ? { ...input, ...change } : input)) };
  }
  const { name, input } = inputsOf(program)[index];
  return { ...program, named: { ...program.named, [name]: { ...input, ...change } } };
}

// The problem with an input before it is sent; undefined if it is valid.
export function inputError(input: Input): string | undefined {
  try {
    inputBody(input);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

const jsonNumber = (value: number): number | string =>
  Object.is(value, -0) ? exactNumber('-0.0') : Number.isFinite(value) ? value : Number.isNaN(value) ? 'NaN' : value > 0 ? 'Infinity' : '-Infinity';

function numberOf(text: string, what: string): number | string {
  const value = parseNumber(text);
  if (value === undefined) throw new Error(text.trim() === '' ? `${what} is missing` : `${what}: '${text.slice(0, 20)}' is not a number`);
  return numberFrom(text, value);
}

function shapeOf(text: string): number[] {
  const shape = parseShape(text);
  if (!shape) throw new Error(`shape: '${text.slice(0, 20)}' is not a list of extents such as 2, 3`);
  return shape;
}

// The value as JSON has it: exact, also beyond 2^53, and with words for what JSON lacks.
const numberFrom = (text: string, value: number) =>
  !Number.isSafeInteger(value) && /^[-+]?\d+$/.test(text.trim()) ? exactNumber(text.trim().replace(/^\+/, '')) : jsonNumber(value);

function nested<T>(shape: number[], values: T[]): unknown {
  if (shape.length === 0) return values[0];
  let at = 0;
  const build = (axis: number): unknown[] => Array.from({ length: shape[axis] }, () => (axis === shape.length - 1 ? values[at++] : build(axis + 1)));
  return build(0);
}

function valuesBody(text: string, input: Input) {
  const { shape, values, texts } = parseTensor(text);
  const body: Record<string, unknown> = { value: nested(shape, values.map((value, i) => numberFrom(texts[i], value))), dtype: input.dtype };
  if (input.shape.trim() !== '') {
    const wanted = shapeOf(input.shape);
    const count = wanted.reduce((product, extent) => product * extent, 1);
    if (count !== values.length) throw new Error(`shape ${wanted.join(', ')} has ${count} elements, but ${values.length} values are given`);
    body.shape = wanted;
  }
  return body;
}

// The input in the form of docs/http.md. Throws an Error with a message for the user.
export function inputBody(input: Input): Record<string, unknown> {
  const { dtype } = input;
  if (input.kind === 'scalar') return { type: 'scalar', value: numberOf(input.value, 'value'), dtype };
  switch (input.source) {
    case 'constant':
      return { type: 'tensor', value: numberOf(input.value, 'value'), shape: shapeOf(input.shape), dtype };
    case 'list':
      return valuesBody(input.list, input);
    case 'paste':
      return valuesBody(input.paste, input);
    case 'random': {
      const normal = input.distribution === 'normal';
      const seed = numberOf(input.seed, 'seed');
      if (!/^\d+$/.test(input.seed.trim())) throw new Error('seed must be an integer of at least 0');
      const first = numberOf(input.first, normal ? 'mean' : 'low');
      const second = numberOf(input.second, normal ? 'deviation' : 'high');
      const bounds = normal ? { mean: first, deviation: second } : { low: first, high: second };
      return { generator: normal ? 'normal' : 'uniform', shape: shapeOf(input.shape), seed, ...bounds, dtype };
    }
    case 'range':
      return { generator: 'range', shape: shapeOf(input.shape), start: numberOf(input.start, 'start'), step: numberOf(input.step, 'step'), dtype };
    case 'eye':
      return { generator: 'eye', shape: shapeOf(input.shape), dtype };
    case 'file': {
      if (!input.file) throw new Error('select a file');
      const several = input.file.tensors.length > 1;
      return { upload: input.file.id, ...(several ? { tensor: input.tensor || input.file.tensors[0].name } : {}) };
    }
  }
}

// Parses a parameter. Throws an Error with a message for the user.
export function parameterValue(parameter: OpParameter, text: string): unknown {
  const bare = text.trim();
  const within = (value: number) => {
    if (parameter.min !== null && value < parameter.min) throw new Error(`${parameter.name} must be ${parameter.min > 0 && parameter.min < 1e-6 ? 'more than 0' : `at least ${parameter.min}`}`);
    if (parameter.max !== null && value > parameter.max) throw new Error(`${parameter.name} must be at most ${parameter.max}`);
    return value;
  };
  switch (parameter.type) {
    case 'boolean':
      return bare === 'true';
    case 'number': {
      const value = parseNumber(bare);
      if (value === undefined) throw new Error(`${parameter.name} must be a number`);
      return jsonNumber(within(value));
    }
    case 'integer':
      if (!/^[+-]?\d+$/.test(bare)) throw new Error(`${parameter.name} must be an integer`);
      return within(Number(bare));
    case 'integers': {
      const parts = bare.replace(/^[[(]|[\])]$/g, '').split(/[,\s]+/).filter((part) => part !== '');
      return parts.map((part) => {
        if (!/^[+-]?\d+$/.test(part)) throw new Error(`${parameter.name} must be a list of integers such as 0, 1`);
        return within(Number(part));
      });
    }
    default:
      return bare;
  }
}

export function parameterError(parameter: OpParameter, text: string | undefined): string | undefined {
  if (text === undefined || text.trim() === '') return parameter.required ? `give a value for ${parameter.name}` : undefined;
  try {
    parameterValue(parameter, text);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

// How the server shall choose, where it is to choose.
export function routingOf(program: Program, device = 'auto'): { routing?: string; prefer?: string } {
  if (device !== 'auto' || program.choice === '' || program.devices.length > 0) return {};
  // The fastest of all, whatever kind the server's settings prefer.
  const [routing, prefer = 'auto'] = program.choice.split(':');
  return { routing, prefer };
}

// The request body of /api/execute and similar routes, for one device. Throws an Error with a message for the user.
export function requestBody(program: Program, device = 'auto'): Record<string, unknown> {
  const named = inputsOf(program).map(({ name, input }) => {
    try {
      return [name, inputBody(input)] as const;
    } catch (error) {
      throw new Error(`${name}: ${(error as Error).message}`);
    }
  });
  if (program.mode === 'expression') {
    if (program.expression.trim() === '') throw new Error('Write an expression first.');
    return { expression: program.expression, inputs: Object.fromEntries(named), device, ...routingOf(program, device) };
  }
  const op = findOp(program.op);
  if (!op) throw new Error(`Unknown operation '${program.op}'.`);
  const parameters: Record<string, unknown> = {};
  for (const parameter of op.parameters) {
    const text = program.parameters[parameter.name];
    const wrong = parameterError(parameter, text);
    if (wrong) throw new Error(wrong);
    if (text !== undefined && text.trim() !== '') parameters[parameter.name] = parameterValue(parameter, text);
  }
  const body: Record<string, unknown> = { operation: op.name, inputs: named.map(([, input]) => input), device, ...routingOf(program, device) };
  if (Object.keys(parameters).length > 0) body.parameters = parameters;
  return body;
}

// A title for the history: add(constant, constant).
export function titleOf(program: Program): string {
  if (program.mode === 'expression') return program.expression.replace(/\s+/g, ' ').trim();
  return `${program.op}(${[...program.opInputs.map(describe), ...givenParameters(program).map(([name, text]) => `${name}=${text}`)].join(', ')})`;
}

// The parameters that differ from the default, as typed.
function givenParameters(program: Program): [string, string][] {
  return (findOp(program.op)?.parameters ?? []).flatMap(({ name }) => {
    const text = program.parameters[name]?.trim() ?? '';
    return text === '' ? [] : [[name, text] as [string, string]];
  });
}

// The op as a call in the expression language, its inputs by their names.
export function callOf(program: Program): string {
  const op = findOp(program.op);
  if (!op) return program.op;
  const named = givenParameters(program).map(([name, text]) => {
    const type = op.parameters.find((parameter) => parameter.name === name)!.type;
    const bare = text.replace(/^[[(]|[\])]$/g, '');
    return `${name}=${type === 'text' ? JSON.stringify(text) : type === 'integers' ? `[${bare.split(/[,\s]+/).filter(Boolean).join(', ')}]` : text}`;
  });
  return `${op.name}(${[...program.opInputs.map((_, i) => inputName(op, i)), ...named].join(', ')})`;
}

// The same program as an expression, unless the user has written one.
export function asExpression(program: Program, carried: string | undefined): Program {
  const op = findOp(program.op);
  const own = program.expression.trim() !== '' && program.expression !== kFirstExpression && program.expression !== carried;
  if (!op || own) return { ...program, mode: 'expression' };
  const named = Object.fromEntries(program.opInputs.map((input, i) => [inputName(op, i), input]));
  return { ...program, mode: 'expression', expression: callOf(program), named: { ...program.named, ...named } };
}

// How often to repeat the run after the first one: 1 is not at all. Throws an Error with a message for the user.
export function repeatOf(program: Program): number {
  const text = program.repeat.trim();
  if (!/^\d+$/.test(text) || Number(text) < 1 || Number(text) > 1000) throw new Error('runs must be an integer from 1 to 1000');
  return Number(text);
}

export function describe(input: Input): string {
  const shape = (parseShape(input.shape) ?? []).join('×');
  if (input.kind === 'scalar') return input.value;
  switch (input.source) {
    case 'constant': return `${input.value} [${shape}]`;
    case 'list': return input.list.length > 24 ? `${input.list.slice(0, 22)}…` : `[${input.list.replace(/^\[|\]$/g, '')}]`;
    case 'paste': return 'pasted';
    case 'file': return input.file?.name ?? 'file';
    case 'random': return `${input.distribution} [${shape}]`;
    default: return `${input.source} [${shape}]`;
  }
}
