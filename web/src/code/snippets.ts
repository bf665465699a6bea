// The computation as code: for a shell with curl or with the command, Python, C++. Each computes exactly what the page does.
import { type Device, toBody } from '../api';
import { inputBody, inputsOf, callOf, type Input, type Program, requestBody, routingOf } from '../calculator/program';
import { parseShape } from '../numbers';
import { quantise } from '../quantise';
import { inputText, isFile, isList, kLongList, listOf, listShape, numberText, storedInteger, storedText } from './input_text';

export type Language = 'command' | 'python' | 'cpp' | 'curl';
export const kLanguages: [Language, string][] = [['command', 'Command'], ['python', 'Python'], ['cpp', 'C++'], ['curl', 'curl']];

// What the code depends on besides the program.
export interface Surroundings {
  origin: string;
  login: boolean; // the server wants a token
  devices: Device[];
  elements: number; // of all results; 0: not known
}

// Larger results come as a file.
const kMostInJson = 1 << 20;

export function snippet(language: Language, program: Program, around: Surroundings): string {
  requestBody(program); // throws if the form is not complete
  switch (language) {
    case 'command': return command(program, around);
    case 'python': return python(program, around);
    case 'cpp': return cpp(program, around);
    case 'curl': return curl(program, around);
  }
}

const expressionOf = (program: Program) => (program.mode === 'expression' ? program.expression : callOf(program));
const files = (program: Program) => inputsOf(program).filter(({ input }) => isFile(input));
const quoted = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`);
const tensorOf = (input: Input) => (input.file!.tensors.length > 1 ? input.tensor || input.file!.tensors[0].name : '');
const allDevices = (program: Program) => (program.devices.length === 0 ? ['auto'] : program.devices);

// The simulated devices of the server, in the order of their ids, up to the last one that the program asks for.
function simulatedOf(program: Program, around: Surroundings): string[] {
  const simulated = around.devices.filter((device) => device.simulated && !device.id.startsWith('ttsim:')).sort((a, b) => a.id.localeCompare(b.id, 'en', { numeric: true }));
  const last = simulated.map((device) => program.devices.includes(device.id)).lastIndexOf(true);
  return simulated.slice(0, last + 1).map((device) => device.architecture ?? 'gpu');
}
const kSimulated = 'A simulated device with the usual times of its kind; the server may have given it others.';

function command(program: Program, around: Surroundings): string {
  const lines: string[] = [];
  const given = inputsOf(program).map(({ name, input }) => {
    if (isFile(input)) return `${name}=${quoted(`@${input.file!.name}${tensorOf(input) ? `:${tensorOf(input)}` : ''}`)}`;
    if (isList(input) && listOf(input).values.length > kLongList) {
      lines.push(`# ${name} has ${listOf(input).values.length} values, too many for a command: save them as ${name}.npy.`);
      return `${name}=@${name}.npy`;
    }
    return `${name}=${quoted(inputText(input))}`;
  });
  const simulated = simulatedOf(program, around);
  if (simulated.length > 0) lines.push(`# ${kSimulated}`);
  for (const device of allDevices(program)) {
    const words = ['tenon run', ...simulated.map((each) => `--sim ${each}`), quoted(expressionOf(program)), ...given, device === 'auto' ? settingsText(program) : `--device ${device}`];
    lines.push(words.filter(Boolean).join(words.join(' ').length > 100 ? ' \\\n  ' : ' '));
  }
  return lines.join('\n');
}

const settingsText = (program: Program) => Object.entries(routingOf(program)).map(([name, value]) => `--set ${name}=${value}`).join(' ');

// The request as JSON text in which |upload| writes the ids of uploaded files.
function requestText(program: Program, device: string, around: Surroundings, upload: (name: string) => string): string {
  const body = requestBody(program, device);
  const named = files(program);
  const ids = new Map(named.map(({ name, input }) => [inputBody(input).upload as string, name]));
  if (around.elements <= kMostInJson) body.output = 'full';
  return toBody(body).replace(/"upload":"([^"]+)"/g, (whole, id: string) => (ids.has(id) ? `"upload":${upload(ids.get(id)!)}` : whole));
}

function curl(program: Program, around: Surroundings): string {
  const token = around.login ? ` \\\n  -H "Authorization: Bearer $TENON_TOKEN"` : '';
  const lines = around.login ? ["# TENON_TOKEN: a token of the server's token file"] : [];
  for (const { name, input } of files(program)) {
    const place = `${around.origin}/api/uploads?name=${encodeURIComponent(input.file!.name)}`;
    lines.push(`${name}=$(curl -s ${quoted(place)}${token} \\\n  -H 'Content-Type: application/octet-stream' --data-binary @${quoted(input.file!.name)} |\n  sed 's/.*"id": *"\\([^"]*\\)".*/\\1/')`);
  }
  const plain = files(program).length === 0 && program.devices.length < 2;
  const text = requestText(program, plain ? (program.devices[0] ?? 'auto') : '$device', around, (name) => `"\u0002${name}\u0002"`);
  // In a text with variables the shell reads these characters.
  const body = plain ? text : text.replace(/[\\`$]/g, '\\$&').replace(/\\\$device/, '$device').replace(/\u0002(\w+)\u0002/g, '$$$1');
  const call = `curl -s ${around.origin}/api/execute${token} \\\n  -H 'Content-Type: application/json' -d @- <<${plain ? "'JSON'" : 'JSON'}\n${body}\nJSON`;
  if (!plain) lines.push(`for device in ${allDevices(program).join(' ')}; do`, call, 'done');
  else lines.push(call);
  return lines.join('\n');
}

// Names that Python or tn.run has a meaning of its own for: given in a dict instead.
const kPythonNames = new Set(
  ('device routing prefer timeout priority on_progress False None True and as assert async await break class continue def del elif else except finally for from ' +
    'global if import in is lambda nonlocal not or pass raise return try while with yield').split(' '),
);
const pythonTuple = (items: (number | string)[]) => `(${items.join(', ')}${items.length === 1 ? ',' : ''})`;
const pythonNumber = (text: string) => text.replace(/^(-?)(nan|inf)$/, '$1tn.$2');

function pythonList(input: Input): string {
  const { shape, values, texts } = listOf(input);
  const rows = listShape(input);
  const items = /^u?int64$/.test(input.dtype)
    ? texts.map((text) => `${storedInteger(text, input.dtype)}`)
    : quantise(values, input.dtype, rows.at(-1) ?? 1).map((value) => pythonNumber(numberText(value)));
  const words = input.dtype === 'bool' ? items.map((item) => (item === '0' ? 'False' : 'True')) : items;
  let at = 0;
  const build = (axis: number): string => (axis === shape.length ? words[at++] : `[${Array.from({ length: shape[axis] }, () => build(axis + 1)).join(', ')}]`);
  return `tn.array(${build(0)}, dtype=tn.${input.dtype})${rows.join() === shape.join() ? '' : `.reshape${pythonTuple(rows)}`}`;
}

function pythonInput(input: Input): string {
  if (isFile(input)) {
    const tensor = input.tensor || input.file!.tensors[0].name;
    return `tn.load(${JSON.stringify(input.file!.name)})${tensor ? `[${JSON.stringify(tensor)}]` : ''}`;
  }
  if (isList(input)) return pythonList(input);
  if (input.kind === 'tensor' && input.source === 'constant')
    return `tn.full(${pythonTuple(parseShape(input.shape) ?? [])}, ${pythonNumber(storedText(input.value, input.dtype))}, dtype=tn.${input.dtype})`;
  return `tn.run(${JSON.stringify(inputText(input))})`;
}

// Computes here, without the server.
function python(program: Program, around: Surroundings): string {
  const lines = ['import tenon as tn  # pip install . in a clone of Tenon', ''];
  const simulated = simulatedOf(program, around);
  if (simulated.length > 0) lines.push(`# ${kSimulated}`, ...simulated.map((each) => `tn.simulate("${each}")`));
  const inputs = inputsOf(program);
  const byName = inputs.every(({ name }) => !kPythonNames.has(name));
  const values = inputs.map(({ name, input }) => (byName ? `    ${name}=${pythonInput(input)},` : `    ${JSON.stringify(name)}: ${pythonInput(input)},`));
  if (inputs.length > 0) lines.push(byName ? 'arrays = dict(' : 'arrays = {', ...values, byName ? ')' : '}');
  const given = inputs.length > 0 ? ', arrays' : '';
  const routing = Object.entries(routingOf(program)).map(([name, value]) => `, ${name}="${value}"`).join('');
  lines.push(`for device in [${allDevices(program).map((device) => JSON.stringify(device)).join(', ')}]:`);
  lines.push(`    results = tn.run(${JSON.stringify(expressionOf(program))}${given}, device=device${routing})`);
  lines.push('    for result in results if isinstance(results, tuple) else [results]:');
  lines.push('        print(result.device, result.dtype, result.shape)', '        print(result)  # numpy.asarray(result) and torch.from_dlpack(result) share its memory');
  return lines.join('\n') + '\n';
}

const kCppTypes: Record<string, string> = {
  bool: 'boolean', uint8: 'u8', uint16: 'u16', uint32: 'u32', uint64: 'u64', int8: 'i8', int16: 'i16', int32: 'i32', int64: 'i64',
  float16: 'f16', bfloat16: 'bf16', float32: 'f32', float64: 'f64', bfloat8_b: 'bfloat8_b', bfloat4_b: 'bfloat4_b',
};
const raw = (text: string) => (/[\n"\\]/.test(text) ? `R"tenon(${text})tenon"` : `"${text}"`);

function cppInput(input: Input): string {
  if (isFile(input)) {
    const name = JSON.stringify(input.file!.name);
    return tensorOf(input) ? `load_arrays(${name}).arrays.at(${JSON.stringify(tensorOf(input))})` : `load_arrays(${name}).arrays.begin()->second`;
  }
  if (!isList(input) || listOf(input).values.length <= kLongList) return `value(${raw(inputText(input))})`;
  const { values, texts } = listOf(input);
  const shape = `{${listShape(input).join(', ')}}`;
  if (input.dtype === 'int64') return `HostArray::from<std::int64_t>(${shape}, {${texts.map((text) => `${storedInteger(text, 'int64')}`.replace('-9223372036854775808', 'INT64_MIN')).join(', ')}})`;
  if (input.dtype === 'uint64') return `HostArray::from<std::uint64_t>(${shape}, {${texts.map((text) => `${storedInteger(text, 'uint64')}u`).join(', ')}})`;
  const number = (value: number) => (Number.isNaN(value) ? 'NAN' : Number.isFinite(value) ? String(value) : value > 0 ? 'INFINITY' : '-INFINITY');
  return `HostArray::from<double>(${shape}, {${values.map(number).join(', ')}}).cast(DType::${kCppTypes[input.dtype]})`;
}

function cpp(program: Program, around: Surroundings): string {
  const inputs = inputsOf(program);
  const given = inputs.map(({ input }) => cppInput(input));
  const simulated = simulatedOf(program, around);
  const { routing, prefer } = routingOf(program);
  const lines = ['// c++ -std=c++20 program.cpp $(pkg-config --cflags --libs tenon)', '#include <tenon/tenon.h>', ''];
  if (given.some((text) => /\b(NAN|INFINITY|INT64_MIN)\b/.test(text))) lines.push('#include <cmath>', '#include <cstdint>');
  lines.push('#include <iostream>', '', 'using namespace tenon;', '');
  if (given.some((text) => text.startsWith('value(')))
    lines.push('HostArray value(std::string_view expression) {', '  return process_manager().run(parse_expression(expression), {}, {.device = "cpu"}).outputs[0];', '}', '');
  lines.push('int main() {');
  if (simulated.length > 0) {
    lines.push(`  // ${kSimulated}`, '  Config config = Config::load();');
    for (const each of simulated) lines.push(`  config.simulated.push_back(SimulatedDevice::of_architecture("${each}"));`);
    lines.push('  set_process_config(config);');
  }
  if (inputs.length > 0) {
    lines.push('  const HostArray inputs[] = {', ...given.map((text, i) => `      ${text},  // ${inputs[i].name}`), '  };');
    lines.push(`  const Graph graph = parse_expression(${raw(expressionOf(program))}, {`);
    lines.push(...inputs.map(({ name }, i) => `      {"${name}", inputs[${i}].dtype(), inputs[${i}].shape()},`), '  });');
  } else {
    lines.push(`  const Graph graph = parse_expression(${raw(expressionOf(program))});`);
  }
  lines.push(`  for (const char* device : {${allDevices(program).map((device) => `"${device}"`).join(', ')}}) {`);
  lines.push(`    const RunResult result = process_manager().run(graph, ${inputs.length > 0 ? 'inputs' : '{}'}, {.device = device${routing ? `, .routing = RoutingMode::${routing}` : ''}${prefer ? `, .prefer = "${prefer}"` : ''}});`);
  lines.push(`    for (const HostArray& output : result.outputs) std::cout << result.device->id << ": " << Tensor(output) << '\\n';`);
  lines.push('    save_safetensors("result.safetensors", {.arrays = {{"result", result.outputs[0]}}});', '  }', '}');
  return lines.join('\n');
}
