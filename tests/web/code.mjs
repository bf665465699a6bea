// The code that the page shows computes exactly what the page computes: each snippet is run as it stands, for a set of programs.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { calculator, close, launch, npy, program, root, safetensors, Server } from './harness.mjs';

const browser = await launch();
const folder = mkdtempSync(join(tmpdir(), 'tenon-web-code-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const kToken = 'a-token-of-the-test';
writeFileSync(join(folder, 'tokens'), `${kToken}\n`, { mode: 0o600 });
const server = await Server.start('--sim', 'wormhole,open=20ms,close=10ms');
const simulated = await server.simulated();

writeFileSync(join(folder, 'a.npy'), npy([2, 3], [0.1, 2, -3, 4, 5e-8, 6]));
writeFileSync(join(folder, 'w.safetensors'), safetensors({ weight: [0.3, 0.2, 0.1], bias: [9] }));

const input = (name, source, shape, dtype) => `&i.${name}=${encodeURIComponent(source)}&i.${name}.shape=${shape}&i.${name}.dtype=${dtype}`;
const kPrograms = {
  'an op with parameters': `#op=clamp${input('x', 'random:uniform:1:-2:4', '3,3', 'float32')}&p.min=1&p.max=2.5`,
  'a large integer': `#op=neg${input('x', 'constant:9007199254740993', '2', 'int64')}`,
  'large unsigned integers': `#op=identity${input('x', 'list:[18446744073709551615, 9223372036854775808, 3]', '', 'uint64')}`,
  'the smallest integer': `#op=identity${input('x', 'list:[-9223372036854775808, 0.5, 7]', '', 'int64')}`,
  'an identity with a batch': `#expr=${encodeURIComponent('sum(x, axis=[1, 2])')}${input('x', 'eye', '2,3,3', 'bfloat16')}`,
  'doubles that are no float32': `#op=mul${input('x', 'list:[[0.1, 0.7], [1e300, -0.0]]', '', 'float64')}${input('y', 'scalar:3', '', 'float64')}`,
  'values that are rounded': `#op=identity${input('x', 'paste:0.1 0.2 0.3\n1000 nan -inf', '', 'bfloat16')}`,
  'a block format': `#expr=${encodeURIComponent('cast(x, float32)')}${input('x', 'list:[3.14159, 2.71828, 1.41421, 0.57721]', '', 'bfloat4_b')}`,
  'integers out of range': `#op=identity${input('x', 'list:[300, -300, 1.9]', '', 'int8')}`,
  'a range': `#op=identity${input('x', 'range:0.1:0.3', '2,4', 'float16')}`,
  'a normal distribution of integers': `#op=identity${input('x', 'random:normal:7:100:50', '5', 'int32')}`,
  'a reshaped list': `#op=sum${input('x', 'list:[1, 2, 3, 4, 5, 6]', '2,3', 'float32')}&p.axis=0&p.keepdims=true`,
  'an expression with text and lines': `#expr=${encodeURIComponent('# it\'s "$HOME" `x`\nt = einsum("ij,jk->ik", a, b)\nt * 2')}${input('a', 'random:uniform:1:0:1', '2,3', 'float32')}${input('b', 'random:uniform:2:0:1', '3,2', 'float32')}`,
  'names that Python uses': `#expr=${encodeURIComponent('device + lambda')}${input('device', 'list:[true, false]', '', 'bool')}${input('lambda', 'list:[nan, inf]', '', 'float32')}`,
  'two results': `#expr=${encodeURIComponent('values, indices = top_k(x, 2)')}${input('x', 'list:[5, 1, 7]', '', 'float32')}`,
  'no inputs': `#expr=${encodeURIComponent('mean(rand([8, 8], seed=3) > 0.5)')}`,
  'two files': `#expr=${encodeURIComponent('a @ w')}${input('a', 'file', '', 'float32')}${input('w', 'file', '', 'float32')}`,
  'names that C++ programs use': `#expr=${encodeURIComponent('inputs + result * graph')}${input('inputs', 'constant:1', '2', 'float32')}${input('result', 'constant:2', '2', 'float32')}${input('graph', 'constant:3', '2', 'float32')}`,
  'a simulated device': `#op=sqrt${input('x', 'constant:2', '3', 'float32')}&device=${simulated}`,
  'the fastest device': `#op=sqrt${input('x', 'constant:2', '3', 'float32')}&auto=fastest`,
  'a preferred kind of device': `#expr=${encodeURIComponent('prefer + routing')}${input('prefer', 'constant:2', '3', 'float32')}${input('routing', 'constant:1', '3', 'float32')}&auto=prefer:cpu`,
  'two devices': `#op=exp${input('x', 'constant:0.5', '2', 'float32')}&device=cpu:0,${simulated}`,
};

// The numbers and words of the values in |text|, in order: integers as text, for they may be larger than a double holds.
function flat(text) {
  return [...text.matchAll(/"?(-?\bInfinity|NaN|true|false|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"?/g)].map(([, word]) => (/[.eE]/.test(word) && !/[a-df-zA-DF-Z]/.test(word) ? Number(word) : word));
}

// The members "values" of all results in an answer.
function valuesIn(text) {
  const answer = text.replace(/"grid":\{[^}]*\}/g, '');
  const found = [];
  for (const match of answer.matchAll(/"values":\s*/g)) {
    const begin = match.index + match[0].length;
    let depth = 0;
    let end = begin;
    do {
      if (answer[end] === '[') depth++;
      if (answer[end] === ']') depth--;
      end++;
    } while (depth > 0 || /[^,}\]\n]/.test(answer[end] ?? ',') && depth === 0 && answer[begin] !== '[');
    found.push(answer.slice(begin, end));
  }
  return found.map(flat);
}

const env = { ...process.env, PATH: `${dirname(program)}${delimiter}${process.env.PATH}`, TENON_RUN_DIR: join(folder, 'run'), TENON_STATE_DIR: join(folder, 'state'), TENON_TOKEN: kToken, no_proxy: '*', LD_LIBRARY_PATH: join(dirname(program), 'lib') };
const run = (command, ...args) => execFileSync(command, args, { cwd: folder, env, stdio: 'pipe', maxBuffer: 1 << 26 }).toString();
const has = (command) => {
  try {
    return run('sh', '-c', `command -v ${command}`).length > 0;
  } catch {
    return false;
  }
};

// The package that this build made. What it prints may be rounded, so its results go through files and the command.
const packages = join(dirname(program), 'python');
const hasPackage = existsSync(join(packages, 'tenon', '__init__.pyi')) && has('python3');
function pythonValues(text) {
  const saves = text.replace(/^( *)print\(result\).*$/m, '$1tn.save(f"python{len(saved)}.safetensors", x=result)\n$1saved.append(result)');
  const printed = execFileSync('python3', ['-c', `saved = []\n${saves}\nprint(len(saved))`], { cwd: folder, env: { ...env, PYTHONPATH: packages }, stdio: 'pipe' }).toString();
  const count = Number(printed.trim().split('\n').at(-1));
  return Array.from({ length: count }, (_, i) => valuesIn(run('tenon', 'run', 'x', `x=@python${i}.safetensors`, '--json'))).flat();
}

// The code in each language, and the values that the page's own request gives.
async function codeOf(of, hash) {
  const page = await calculator(browser, of, '', { extraHTTPHeaders: of.headers });
  const checks = [];
  page.on('request', (request) => request.url().endsWith('/api/check') && checks.push(request.postData()));
  await page.goto(of.url + '/' + hash);
  for (const [index, file] of ['a.npy', 'w.safetensors'].entries()) {
    if (!hash.includes('=file')) break;
    await page.locator(`#input-${index}-file`).setInputFiles(join(folder, file));
    await page.getByText(new RegExp(`^${file}: `)).waitFor();
  }
  if (hash.includes('=file')) await page.locator('#input-1-tensor').selectOption('weight');
  while (checks.length === 0) await page.waitForTimeout(50);
  await page.getByText(/^Gives /).waitFor();
  await page.getByRole('button', { name: 'Code' }).click();
  const texts = {};
  for (const [id, name] of [['command', 'Command'], ['python', 'Python'], ['cpp', 'C++'], ['curl', 'curl']]) {
    await page.getByRole('tab', { name, exact: true }).click();
    texts[id] = await page.locator('#code-text').innerText();
  }
  await page.keyboard.press('Escape');
  const body = checks.at(-1);
  const response = await fetch(`${of.url}/api/execute`, { method: 'POST', headers: { 'Content-Type': 'application/json', ...of.headers }, body: body.replace(/\}$/, ',"output":"full","details":false,"compare":false}') });
  const expected = valuesIn(await response.text());
  assert.ok(expected.length > 0 && expected.every((values) => values.length > 0), 'the page has values');
  await close(page);
  return { texts, expected };
}

const cppTexts = [];
for (const [name, hash] of Object.entries(kPrograms)) {
  test(`${name}: curl, Python and the command give the values of the page`, async () => {
    const { texts, expected } = await codeOf(server, hash);
    const times = name === 'two devices' ? 2 : 1;
    const wanted = Array.from({ length: times }, () => expected).flat();
    if (has('curl')) assert.deepEqual(valuesIn(run('bash', '-c', texts.curl)), wanted, `curl:\n${texts.curl}`);
    if (hasPackage) assert.deepEqual(pythonValues(texts.python), wanted, `Python:\n${texts.python}`);
    const command = texts.command.replace(/(tenon run\b[\s\S]*?)(?=\ntenon run|$)/g, '$1 --json');
    assert.deepEqual(valuesIn(run('bash', '-c', command)), wanted, `command:\n${texts.command}`);
    cppTexts.push({ name, text: texts.cpp, expected });
  });
}

test('with a login the code sends a token', async () => {
  const guarded = await Server.start('--token-file', join(folder, 'tokens'));
  guarded.headers = { Authorization: `Bearer ${kToken}` };
  const { texts, expected } = await codeOf(guarded, kPrograms['two files']);
  if (has('curl')) assert.deepEqual(valuesIn(run('bash', '-c', texts.curl)), expected, texts.curl);
  if (hasPackage) assert.deepEqual(pythonValues(texts.python), expected, texts.python);
});

test('the choice of a device is one of the call, not of the process', async () => {
  const { texts } = await codeOf(server, kPrograms['a preferred kind of device']);
  assert.match(texts.python, /tn\.run\(.*, device=device, routing="prefer", prefer="cpu"\)/);
  assert.doesNotMatch(texts.python, /config/);
});

// All programs in one translation unit: compiling takes most of the time.
test('C++ compiles, runs, and saves the values of the page', async (context) => {
  const library = join(dirname(program), 'lib', 'libtenon.so');
  const compiler = ['clang++-19', 'clang++', 'g++'].find(has);
  if (!compiler) return context.skip('there is no C++ compiler');
  const includes = new Set();
  const bodies = cppTexts.map(({ text }, i) => {
    for (const line of text.match(/^#include .*$/gm)) includes.add(line);
    return `namespace program${i} {\n${text.replace(/^#include .*$/gm, '').replace('int main()', 'int main_()')}\n}`;
  });
  const choice = cppTexts.map((_, i) => `    case ${i}: return program${i}::main_();`).join('\n');
  const source = `${[...includes].join('\n')}\n#include <cstdlib>\n${bodies.join('\n').replace(/int main_\(\) \{([\s\S]*?)\n\}\n\}/g, 'int main_() {$1\n  return 0;\n}\n}')}\nint main(int, char** words) {\n  switch (std::atoi(words[1])) {\n${choice}\n  }\n  return 1;\n}\n`;
  writeFileSync(join(folder, 'all.cpp'), source);
  if (!existsSync(library)) {
    run(compiler, '-std=c++20', '-fsyntax-only', '-I', join(root, 'include'), 'all.cpp');
    return context.skip('libtenon.so is not built: the programs were compiled, but not run');
  }
  run(compiler, '-std=c++20', '-I', join(root, 'include'), 'all.cpp', '-o', 'all', '-L', dirname(library), '-ltenon');
  for (const [i, { name, text, expected }] of cppTexts.entries()) {
    run(join(folder, 'all'), String(i));
    const saved = run('tenon', 'run', 'x', 'x=@result.safetensors', '--json');
    assert.deepEqual(valuesIn(saved), expected.slice(0, 1), `${name}:\n${text}`);
  }
});
