// The computation as code: C++, Python, curl.
import { toBody } from '../api';
import { findOp } from '../catalogue';
import { elementCount, parseShape, parseTensor } from '../numbers';
import { type Input, inputsOf, parameterValue, type Program, requestBody } from './program';

export type Language = 'curl' | 'python' | 'cpp';
export const kLanguages: [Language, string][] = [['cpp', 'C++'], ['python', 'Python'], ['curl', 'curl']];

export function snippet(language: Language, program: Program): string {
  const device = program.devices[0] ?? 'auto';
  switch (language) {
    case 'curl': {
      const body = toBody(requestBody(program, device)).replace(/'/g, `'\\''`);
      return `curl -s ${location.origin}/api/execute \\\n  -H 'Content-Type: application/json' \\\n  -d '${body}'`;
    }
    case 'python':
      return python(program, device);
    case 'cpp':
      return cpp(program, device);
  }
}

// The input as an expression of the expression language, which C++ and the command share.
function asExpression(input: Input): string {
  const shape = `[${(parseShape(input.shape) ?? []).join(', ')}]`;
  if (input.kind === 'scalar') return `cast(${input.value}, ${input.dtype})`;
  switch (input.source) {
    case 'constant': return `full(${shape}, ${input.value}, dtype=${input.dtype})`;
    case 'list':
    case 'paste': {
      const values = literal(input.source === 'list' ? input.list : input.paste);
      const reshaped = input.shape.trim() === '' ? values : `reshape(${values}, ${shape})`;
      return `cast(${reshaped}, ${input.dtype})`;
    }
    case 'random': {
      const normal = input.distribution === 'normal';
      const base = `${normal ? 'randn' : 'rand'}(${shape}, seed=${input.seed})`;
      const plain = input.first.trim() === '0' && input.second.trim() === '1';
      const scaled = plain ? base : normal ? `${base} * ${input.second} + ${input.first}` : `${base} * (${input.second} - ${input.first}) + ${input.first}`;
      return input.dtype === 'float32' ? scaled : `cast(${scaled}, ${input.dtype})`;
    }
    case 'range': {
      const count = elementCount(parseShape(input.shape) ?? []);
      return `cast(reshape(arange(0, ${count}) * ${input.step} + ${input.start}, ${shape}), ${input.dtype})`;
    }
    case 'eye': {
      const extents = parseShape(input.shape) ?? [1];
      return `eye(${extents.slice(-2).join(', ')}, dtype=${input.dtype})`;
    }
    case 'file':
      return `load("${input.file?.name ?? 'file.npy'}")`;
  }
}

function literal(text: string): string {
  const { shape, values } = parseTensor(text);
  let at = 0;
  const build = (axis: number): string =>
    axis === shape.length ? String(values[at++]) : `[${Array.from({ length: shape[axis] }, () => build(axis + 1)).join(', ')}]`;
  return build(0);
}

function parameterText(program: Program, quote: (text: string) => string): string[] {
  const op = findOp(program.op);
  if (!op) return [];
  return op.parameters.flatMap((parameter) => {
    const text = program.parameters[parameter.name];
    if (text === undefined || text.trim() === '') return [];
    const value = parameterValue(parameter, text);
    return [`${parameter.name}=${Array.isArray(value) ? `[${value.join(', ')}]` : typeof value === 'string' && parameter.type === 'text' ? quote(value) : String(value)}`];
  });
}

function expressionOf(program: Program): string {
  if (program.mode === 'expression') return program.expression;
  const names = inputsOf(program).map(({ name }) => name);
  return `${program.op}(${[...names, ...parameterText(program, (text) => `"${text}"`)].join(', ')})`;
}

function cpp(program: Program, device: string): string {
  const inputs = inputsOf(program);
  const lines = ['#include <tenon/io.h>', '#include <tenon/manager.h>', '#include <tenon/expression.h>', ''];
  lines.push('int main() {', '  tenon::DeviceManager& manager = tenon::process_manager();');
  for (const { name, input } of inputs) {
    if (input.source === 'file' && input.kind === 'tensor') {
      lines.push(`  tenon::HostArray ${name} = tenon::load_npy("${input.file?.name ?? 'file.npy'}");`);
    } else {
      lines.push(`  tenon::HostArray ${name} =`, `      manager.run(tenon::parse_expression(R"(${asExpression(input)})"), {}).outputs[0];`);
    }
  }
  const types = inputs.map(({ name }) => `{"${name}", ${name}.dtype(), ${name}.shape()}`).join(', ');
  const typed = inputs.length === 0 ? '' : `, {${types}}`;
  lines.push(`  tenon::Graph graph = tenon::parse_expression(R"(${expressionOf(program)})"${typed});`);
  const arrays = inputs.map(({ name }) => name).join(', ');
  if (inputs.length > 0) lines.push(`  const tenon::HostArray inputs[] = {${arrays}};`);
  const given = inputs.length === 0 ? '{}' : 'inputs';
  lines.push(`  tenon::RunResult result = manager.run(graph, ${given}, {.device = "${device}"});`);
  lines.push('  tenon::save_npy("result.npy", result.outputs[0]);', '}');
  return lines.join('\n');
}

// Uses only Python's standard library and the server.
function python(program: Program, device: string): string {
  const body = JSON.stringify(JSON.parse(toBody(requestBody(program, device))), null, 4)
    .replace(/\btrue\b/g, 'True').replace(/\bfalse\b/g, 'False').replace(/\bnull\b/g, 'None');
  return `import json
import urllib.request

request = ${body}

answer = urllib.request.urlopen(urllib.request.Request(
    "${location.origin}/api/execute",
    data=json.dumps(request).encode(),
    headers={"Content-Type": "application/json"},
))
result = json.load(answer)
print(result["device"]["id"], result["shape"], result["dtype"])
print(result["sample_values"])`;
}
