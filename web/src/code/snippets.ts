// The computation as code: for a shell with curl or with the command, Python, C++. Each computes exactly what the page does.
import { type Device, toBody } from '../api';
import { inputBody, inputsOf, callOf, type Input, type Program, requestBody, routingOf } from '../calculator/program';
import { inputText, isFile, isList, kLongList, listOf, listShape, storedInteger } from './input_text';

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
  const simulated = around.devices.filter((device) => device.simulated).sort((a, b) => a.id.localeCompare(b.id, 'en', { numeric: true }));
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

// JSON text as a Python literal: the same but for three words, and numbers keep every digit.
function pythonText(json: string, indent: string): string {
  const words: Record<string, string> = { true: 'True', false: 'False', null: 'None' };
  let depth = 0;
  const pieces = json.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  return pieces
    .map((piece, i) => {
      const line = () => `\n${indent}${'    '.repeat(depth)}`;
      if (piece === '{') return depth++, `{${pieces[i + 1] === '}' ? '' : line()}`;
      if (piece === '}') return depth--, `${pieces[i - 1] === '{' ? '' : line()}}`;
      if (piece === ',') return insideList(pieces, i) ? ', ' : `,${line()}`;
      if (piece === ':') return ': ';
      return words[piece] ?? piece;
    })
    .join('');
}

function insideList(pieces: string[], i: number): boolean {
  let closed = 0;
  for (let j = i - 1; j >= 0; j--) {
    if (pieces[j] === ']' || pieces[j] === '}') closed++;
    if ((pieces[j] === '[' || pieces[j] === '{') && closed-- === 0) return pieces[j] === '[';
  }
  return false;
}

// Uses only Python's standard library and the server.
function python(program: Program, around: Surroundings): string {
  const large = around.elements > kMostInJson;
  const body = requestText(program, '\u0003', around, (name) => `"\u0002${name}\u0002"`).replace(',"device":"\u0003"', '').replace('"device":"\u0003",', '');
  const uploads = files(program);
  const named = Object.fromEntries(uploads.map(({ name, input }) => [name, input.file!.name]));
  const text = pythonText(body, '').replace(/"\u0002(\w+)\u0002"/g, (_, name: string) => `upload(${JSON.stringify(named[name])})`);
  const token = around.login ? `\nTOKEN = os.environ["TENON_TOKEN"]  # a token of the server's token file` : '';
  const headers = around.login ? '{"Content-Type": kind, "Authorization": "Bearer " + TOKEN}' : '{"Content-Type": kind}';
  const imports = ['json', ...(around.login ? ['os'] : []), ...(uploads.length > 0 ? ['urllib.parse'] : []), 'urllib.request'].map((name) => `import ${name}`).join('\n');
  const upload = `

def upload(name):
    with open(name, "rb") as file:
        answer = post("/api/uploads?name=" + urllib.parse.quote(name), file.read(), "application/octet-stream")
    return json.loads(answer)["id"]
`;
  const each = large
    ? `    answer = post("/api/execute", json.dumps({**request, "device": device, "output": "safetensors"}).encode(), "application/json")
    with open("result.safetensors", "wb") as file:  # safetensors.numpy.load_file reads it
        file.write(answer)`
    : `    answer = json.loads(post("/api/execute", json.dumps({**request, "device": device}).encode(), "application/json"))
    for result in answer["results"]:
        print(answer["device"]["id"], result["name"], result["dtype"], result["shape"])
        print(result["values"])  # numpy.array(result["values"]) makes an array of it`;
  return `${imports}

SERVER = "${around.origin}"${token}


def post(path, data, kind):
    request = urllib.request.Request(SERVER + path, data, ${headers})
    with urllib.request.urlopen(request) as answer:
        return answer.read()
${uploads.length > 0 ? upload : ''}

request = ${text}

for device in [${allDevices(program).map((device) => JSON.stringify(device)).join(', ')}]:
${each}
`;
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
  lines.push(`    for (const HostArray& output : result.outputs) std::cout << result.device.id << ": " << Tensor(output) << '\\n';`);
  lines.push('    save_safetensors("result.safetensors", {.arrays = {{"result", result.outputs[0]}}});', '  }', '}');
  return lines.join('\n');
}
