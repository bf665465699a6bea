// The Models view: the list, facts, batches as they run, vectors on a plane, tensors, a dropped file.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { launch, root, scenario, Server, visit } from './harness.mjs';

const browser = await launch();
const kFolder = join(root, 'tests/fixtures/models');
const server = await Server.start('--models', kFolder);
const bare = await Server.start();
const pictures = await Server.start();
const kLanguage = join(root, 'tests/model/gguf');
const language = await Server.start('--models', kLanguage);
// Every step takes a moment, so that an answer is long enough to be stopped.
const slow = await Server.start('--models', kLanguage, '--sim', 'gpu,compute=20ms,open=0,close=0', '--set', 'allow_simulated=true', '--set', 'prefer=gpu');

// ONNX in protobuf's wire format: field number, kind, content.
const varint = (value) => (value < 128 ? [value] : [(value & 127) | 128, ...varint(value >> 7)]);
const whole = (field, value) => [field << 3, ...varint(value)];
const part = (field, content) => [(field << 3) | 2, ...varint(content.length), ...content];
const text = (field, value) => part(field, Buffer.from(value));
const value = (name, extents) => [
  ...text(1, name),
  ...part(2, part(1, [...whole(1, 1), ...part(2, extents.flatMap((extent) => part(1, typeof extent === 'number' ? whole(1, extent) : text(2, extent))))])),
];
// y = the mean of each channel of x.
const means = (extents) =>
  Buffer.from([
    ...whole(1, 8),
    ...part(7, [...part(1, [...text(1, 'x'), ...text(2, 'y'), ...text(4, 'GlobalAveragePool')]), ...text(2, 'means'), ...part(11, value('x', extents)), ...part(12, value('y', [1, 3, 1, 1]))]),
    ...part(8, [...text(1, ''), ...whole(2, 17)]),
  ]);
// A picture of one colour as a bitmap file.
function bitmap(width, height, [red, green, blue]) {
  const row = Math.ceil((width * 3) / 4) * 4;
  const file = Buffer.alloc(54 + row * height);
  file.write('BM');
  file.writeUInt32LE(file.length, 2);
  file.writeUInt32LE(54, 10);
  file.writeUInt32LE(40, 14);
  file.writeInt32LE(width, 18);
  file.writeInt32LE(height, 22);
  file.writeUInt16LE(1, 26);
  file.writeUInt16LE(24, 28);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) file.set([blue, green, red], 54 + y * row + 3 * x);
  return file;
}

async function view(which = server) {
  const page = await visit(browser, which, '/models');
  await page.getByRole('heading', { name: 'Models', level: 2 }).waitFor();
  return page;
}
async function choose(page, name) {
  await page.getByRole('button', { name: new RegExp(`^${name}`) }).click();
  return page.getByRole('article', { name: `Model ${name}` });
}

scenario('a model of the folder shows what it takes, gives and needs', () => view(), async (page) => {
  const card = await choose(page, 'words');
  const text = await card.innerText();
  for (const part of ['input_ids: int64 [batch, length]', 'last_hidden_state: float [batch, length, 4]', 'cpu:0', 'ONNX opset 17']) assert.ok(text.includes(part), `${part} in ${text}`);
  await page.getByRole('button', { name: /^words.*in memory/ }).waitFor();
});

scenario('texts become a plot with nearest neighbours', () => view(), async (page) => {
  await choose(page, 'words');
  await page.getByLabel('Texts, one per line').fill('a b\nb a\nc d e f');
  await page.getByRole('button', { name: 'Compute vectors' }).click();
  await page.getByText('3 vectors of 4 from 8 tokens').waitFor();
  assert.equal(await page.locator('.plot circle').count(), 3);
  const nearest = page.getByRole('list', { name: 'Nearest neighbours' }).getByRole('listitem').first();
  assert.match(await nearest.innerText(), /^1\.000\s+2\. b a/);
  await page.locator('.plot g').nth(2).click();
  assert.equal(await page.getByLabel('Nearest neighbours of').inputValue(), '2');
});

scenario('batches and rows are counted while they run', () => view(), async (page) => {
  await choose(page, 'words');
  const rows = async () => Number(await page.locator('.facts > div', { hasText: /^Rows\n?\d/ }).locator('dd').innerText());
  const before = await rows();
  await Promise.all(Array.from({ length: 8 }, () => server.post('/v1/embeddings', { model: 'words', input: ['a b', 'c'] })));
  await page.waitForFunction((wanted) => {
    const facts = [...document.querySelectorAll('.facts > div')];
    return Number(facts.find((each) => each.querySelector('dt').textContent === 'Rows').querySelector('dd').textContent) >= wanted;
  }, before + 16);
  assert.ok((await page.locator('meter').count()) > 0);
});

scenario('tensors go in and out, and a wrong one is explained', () => view(), async (page) => {
  await choose(page, 'linear');
  await page.getByLabel('Values').fill('1, 0, 0');
  await page.getByRole('button', { name: 'Run the model' }).click();
  await page.getByText('y: FP32 1 × 2').waitFor();
  assert.match(await page.locator('dl[aria-label="Outputs"]').innerText(), /1, 2/);
  await page.getByLabel('Shape').fill('1, 4');
  await page.getByLabel('Values').fill('ones');
  await page.getByRole('button', { name: 'Run the model' }).click();
  assert.match(await page.getByRole('alert').innerText(), /the model expects x: float \[batch, 3\]/i);
});

scenario('a picture is scaled to the input, in the order and scale that were chosen', () => view(pictures), async (page) => {
  await page.getByLabel('ONNX file').setInputFiles({ name: 'means.onnx', mimeType: 'application/octet-stream', buffer: means([1, 3, 'height', 'width']) });
  await page.getByRole('article', { name: /Model means-/ }).waitFor();
  assert.equal(await page.getByLabel('Shape').inputValue(), '1, 3, 224, 224');
  await page.getByLabel('Shape').fill('1, 3, 8, 6');
  await page.getByLabel('Picture for x').setInputFiles({ name: 'blood orange.bmp', mimeType: 'image/bmp', buffer: bitmap(40, 20, [255, 51, 0]) });
  const preview = page.getByRole('img', { name: 'blood orange.bmp as the model sees it, 6 × 8' });
  await preview.waitFor();
  const outputs = page.locator('dl[aria-label="Outputs"]');
  const run = async () => {
    await page.getByRole('button', { name: 'Run the model' }).click();
    await page.getByRole('button', { name: 'Run the model' }).waitFor();
  };
  await run();
  await outputs.getByText(/^1, 0\.2\d*, 0$/).waitFor();
  await page.getByLabel('Channels').selectOption('bgr');
  await page.getByLabel('Values', { exact: true }).selectOption('bytes');
  await run();
  await outputs.getByText(/^0, 51\S*, 255$/).waitFor();
  await outputs.getByText(/^Largest: 2 \(255\), 1 \(51\S*\), 0 \(0\)$/).waitFor();
  await page.getByRole('button', { name: 'Remove the picture' }).click();
  assert.equal(await page.getByLabel('Values: numbers').inputValue(), 'random');
  await page.getByLabel('Picture for x').setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('no picture') });
  await page.getByText('notes.txt is not a picture that this browser reads.').waitFor();
});

scenario('the graph lists its nodes and counts its ops', () => view(), async (page) => {
  const card = await choose(page, 'words');
  await card.getByText('Graph', { exact: true }).click();
  const nodes = card.getByRole('region', { name: 'Nodes of the graph' });
  await nodes.getByRole('row').nth(1).waitFor();
  const all = (await nodes.getByRole('row').count()) - 1;
  const { model } = await (await fetch(`${server.url}/api/models/words`)).json();
  assert.equal(all, Object.values(model.info.ops).reduce((sum, count) => sum + count, 0));
  assert.equal(await card.getByRole('list', { name: 'Ops of the model' }).getByRole('listitem').count(), Object.keys(model.info.ops).length);
  const [op, count] = Object.entries(model.info.ops)[0];
  await card.getByLabel('Show').selectOption(op);
  assert.equal((await nodes.getByRole('row').count()) - 1, count);
});

scenario('the page asks for the next part of a long graph', () => view(), async (page) => {
  const node = (i) => ({ name: `n${i}`, op: 'Relu', inputs: [`h${i}`], weights: [], outputs: [`h${i + 1}`] });
  await page.route('**/api/models/words/graph?first=*', (route) => {
    const first = Number(new URL(route.request().url()).searchParams.get('first'));
    return route.fulfill({ json: { nodes: [node(first), node(first + 1)], next: first === 0 ? 2 : null } });
  });
  const card = await choose(page, 'words');
  await card.getByText('Graph', { exact: true }).click();
  await card.getByRole('button', { name: 'Show more' }).click();
  await card.getByRole('cell', { name: 'h4' }).waitFor();
  assert.equal(await card.getByRole('button', { name: 'Show more' }).count(), 0);
});

scenario('a chat streams its answer and says how fast it was', () => view(language), async (page) => {
  await choose(page, 'llama_q4_1');
  await page.getByText('Settings').click();
  await page.getByLabel('Tokens at most').fill('20');
  await page.getByLabel('Message').fill('hello world');
  await page.getByLabel('Message').press('Enter');
  await page.getByText(/prompt tokens, first text after \d+ ms; \d+ tokens/).waitFor();
  const turns = page.getByRole('list', { name: 'Conversation' }).getByRole('listitem');
  assert.equal(await turns.count(), 2);
  assert.match(await turns.first().innerText(), /hello world/);
  assert.ok((await turns.last().locator('p').innerText()).length > 0);
  const timeline = page.getByRole('region', { name: 'Device timeline' });
  await timeline.getByText(/\d+ runs in /).waitFor();
  assert.match(await timeline.getByRole('img').getAttribute('aria-label'), /^cpu:0: \d+ runs in .*Computing /);
  await page.getByRole('button', { name: 'New conversation' }).click();
  assert.equal(await timeline.count(), 0);
  assert.equal(await turns.count(), 0);
});

scenario('a long answer can be stopped', () => view(slow), async (page) => {
  await choose(page, 'llama_q4_1');
  await page.route('**/v1/chat/completions', () => {}); // an answer that takes for ever
  await page.getByLabel('Message').fill('hello');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByRole('button', { name: 'Send' }).waitFor();
});

scenario('a dropped file is tried without a folder', () => view(bare), async (page) => {
  await page.getByText('started without a folder of models').waitFor();
  await page.getByLabel('ONNX file').setInputFiles({ name: 'linear.onnx', mimeType: 'application/octet-stream', buffer: readFileSync(join(kFolder, 'linear.onnx')) });
  await page.getByRole('article', { name: /Model linear-/ }).waitFor();
  await page.getByRole('button', { name: 'Run the model' }).click();
  await page.getByText('y: FP32 1 × 2').waitFor();
  await page.getByLabel('ONNX file').setInputFiles({ name: 'broken.onnx', mimeType: 'application/octet-stream', buffer: Buffer.from('nothing') });
  await page.getByRole('alert').waitFor();
});
