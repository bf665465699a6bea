// The Models view: the list, facts, batches as they run, vectors on a plane, tensors, a dropped file.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { launch, root, scenario, Server, visit } from './harness.mjs';

const browser = await launch();
const kFolder = join(root, 'tests/fixtures/models');
const server = await Server.start('--models', kFolder);
const bare = await Server.start();
const language = await Server.start('--models', join(root, 'tests/model/gguf'));

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
  await page.getByRole('button', { name: 'New conversation' }).click();
  assert.equal(await turns.count(), 0);
});

scenario('a long answer can be stopped', () => view(language), async (page) => {
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
