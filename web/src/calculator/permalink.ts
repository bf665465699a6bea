// A program as an address: readable, complete except for file contents, and never sent to the server (it follows the '#').
//   #op=clamp&x=random:uniform:1:0:1&x.shape=4,4&x.dtype=float32&p.min=0&device=cpu:0
import { findOp } from '../catalogue';
import { type Input, inputsOf, kSources, newInput, type Program, type Source, withOp } from './program';

export function toHash(program: Program): string {
  const query = new URLSearchParams();
  if (program.mode === 'op') query.set('op', program.op);
  else query.set('expr', program.expression);
  inputsOf(program).forEach(({ name, input }) => {
    query.set(`i.${name}`, sourceText(input));
    if (input.kind === 'tensor' && input.source !== 'file') query.set(`i.${name}.shape`, input.shape.replace(/\s+/g, ''));
    query.set(`i.${name}.dtype`, input.dtype);
  });
  for (const [name, text] of Object.entries(program.parameters)) if (text.trim() !== '') query.set(`p.${name}`, text);
  if (program.devices.length > 0) query.set('device', program.devices.join(','));
  else if (program.choice !== '') query.set('auto', program.choice);
  if (program.repeat.trim() !== '1') query.set('runs', program.repeat.trim());
  return `#${query.toString().replace(/%2C/g, ',').replace(/%3A/g, ':').replace(/%5B/g, '[').replace(/%5D/g, ']')}`;
}

function sourceText(input: Input): string {
  if (input.kind === 'scalar') return `scalar:${input.value}`;
  switch (input.source) {
    case 'constant': return `constant:${input.value}`;
    case 'list': return `list:${input.list}`;
    case 'paste': return `paste:${input.paste}`;
    case 'random': return `random:${input.distribution}:${input.seed}:${input.first}:${input.second}`;
    case 'range': return `range:${input.start}:${input.step}`;
    default: return input.source;
  }
}

function inputFrom(text: string, shape: string | null, dtype: string | null): Input {
  const [source, ...rest] = text.split(':');
  const whole = rest.join(':');
  const input = newInput({ dtype: dtype ?? 'float32', shape: shape ?? '' });
  if (source === 'scalar') return { ...input, kind: 'scalar', value: whole };
  if (!(kSources as readonly string[]).includes(source)) return input;
  input.source = source as Source;
  if (source === 'constant') input.value = whole;
  if (source === 'list') input.list = whole;
  if (source === 'paste') input.paste = whole;
  if (source === 'range') [input.start, input.step] = [rest[0] ?? '0', rest[1] ?? '1'];
  if (source === 'random') {
    input.distribution = rest[0] === 'normal' ? 'normal' : 'uniform';
    [input.seed, input.first, input.second] = [rest[1] ?? '1', rest[2] ?? '0', rest[3] ?? '1'];
  }
  return input;
}

// Undefined if the address has no program.
export function fromHash(hash: string, base: Program): Program | undefined {
  const query = new URLSearchParams(hash.replace(/^#/, ''));
  const expression = query.get('expr');
  const opName = query.get('op');
  if (expression === null && opName === null) return undefined;
  const named: [string, Input][] = [];
  const parameters: Record<string, string> = {};
  query.forEach((value, key) => {
    const input = /^i\.([^.]+)$/.exec(key);
    if (input) named.push([input[1], inputFrom(value, query.get(`${key}.shape`), query.get(`${key}.dtype`))]);
    if (key.startsWith('p.')) parameters[key.slice(2)] = value;
  });
  const devices = (query.get('device') ?? '').split(',').filter((device) => device !== '');
  const repeat = query.get('runs') ?? '1';
  const choice = /^(fastest|cheapest|prefer:\w+)$/.exec(query.get('auto') ?? '')?.[0] ?? '';
  if (expression !== null) return { ...base, mode: 'expression', expression, named: Object.fromEntries(named), devices, choice, repeat };
  const op = findOp(opName!);
  if (!op) return { ...base, mode: 'op', op: opName!, devices, choice, repeat };
  const opInputs = named.map(([, input]) => input);
  return { ...withOp({ ...base, opInputs }, op.name), parameters, devices, choice, repeat };
}
