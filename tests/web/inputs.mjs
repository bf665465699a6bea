// The inputs: every source, every dtype, files; what the page says of them is what the server does.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { calculate, calculator, launch, npy, outcome, safetensors, scenario, Server } from './harness.mjs';
import { load } from './page_modules.mjs';

const browser = await launch();
const server = await Server.start();
const fresh = (hash = '#op=identity') => () => calculator(browser, server, hash);
const value = async (page) => (await outcome(page)).locator('.big.number').first().innerText();

async function values(page) {
  await calculate(page);
  await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
  return (await (await outcome(page)).locator('.grid-table tbody td').allInnerTexts()).map(Number);
}

scenario('every source of values gives what it says', fresh(), async (page) => {
  const field = (name) => page.locator(`#input-0-${name}`);
  const source = (name) => field('source').selectOption(name);
  await field('dtype').selectOption('float32');
  await field('shape').fill('2, 2');
  await field('value').fill('2.5');
  assert.deepEqual(await values(page), [2.5, 2.5, 2.5, 2.5]);
  await source('list');
  await field('list').fill('[[1, 2], [3, 4]]');
  assert.deepEqual(await values(page), [1, 2, 3, 4]);
  await source('paste');
  await field('paste').fill('5\t6\n7\t8');
  assert.deepEqual(await values(page), [5, 6, 7, 8]);
  await source('range');
  await field('shape').fill('2, 2');
  await field('start').fill('10');
  await field('step').fill('-2');
  assert.deepEqual(await values(page), [10, 8, 6, 4]);
  await source('eye');
  assert.deepEqual(await values(page), [1, 0, 0, 1]);
  await source('random');
  await field('first').fill('5');
  await field('second').fill('6');
  const random = await values(page);
  assert.ok(random.every((each) => each >= 5 && each < 6) && new Set(random).size === 4);
  assert.deepEqual(await values(page), random, 'the same seed gives the same numbers');
  await field('seed').fill('2');
  assert.notDeepEqual(await values(page), random);
  await field('distribution').selectOption('normal');
  await field('first').fill('100');
  await field('second').fill('0.001');
  assert.ok((await values(page)).every((each) => Math.abs(each - 100) < 1));
});

scenario('a scalar has no shape', fresh(), async (page) => {
  await page.locator('#input-0-kind').selectOption('scalar');
  await page.locator('#input-0-value').fill('-4');
  assert.equal(await page.locator('#input-0-shape').count(), 0);
  await calculate(page);
  assert.equal(await value(page), '-4');
  assert.match(await (await outcome(page)).innerText(), /scalar ·/);
});

scenario('what is wrong is said before it is sent', fresh(), async (page) => {
  const button = page.getByRole('button', { name: 'Calculate' });
  await page.locator('#input-0-value').fill('abc');
  await page.getByText("Value: 'abc' is not a number.").or(page.getByText("value: 'abc' is not a number.")).first().waitFor();
  assert.equal(await button.isDisabled(), true);
  await page.locator('#input-0-value').fill('1');
  await page.locator('#input-0-shape').fill('3, x');
  await page.getByText(/is not a list of extents/).first().waitFor();
  await page.locator('#input-0-source').selectOption('list');
  await page.locator('#input-0-list').fill('1, 2, 3');
  await page.locator('#input-0-shape').fill('2, 2');
  await page.getByText(/has 4 elements, but 3 values are given/).first().waitFor();
});

scenario('shapes that do not fit are refused by the server, in a sentence', fresh('#op=add&i.x=constant:1&i.x.shape=2,3&i.x.dtype=float32&i.y=constant:1&i.y.shape=4&i.y.dtype=float32'), async (page) => {
  await page.locator('.forecast.wrong').filter({ hasText: /shape|broadcast/ }).waitFor();
});

scenario('the quantised value is shown while it is typed', fresh(), async (page) => {
  await page.locator('#input-0-value').fill('0.1');
  await page.getByText('stored as 0.10009765625 in bfloat16').waitFor();
  await page.locator('#input-0-dtype').selectOption('float16');
  await page.getByText('stored as 0.0999755859375 in float16').waitFor();
  await page.locator('#input-0-value').fill('0.5');
  await page.getByText('stored exactly in float16').waitFor();
});

scenario('64-bit integers keep every digit', fresh('#op=identity&i.x=constant:9007199254740993&i.x.shape=2&i.x.dtype=int64'), async (page) => {
  await page.getByText('Gives 2 int64').waitFor();
  await calculate(page);
  assert.equal(await value(page), '9007199254740993');
});

scenario('a file is uploaded and computed with', fresh(), async (page) => {
  await page.locator('#input-0-source').selectOption('file');
  const chosen = page.locator('#input-0-file');
  await chosen.setInputFiles({ name: 'three.npy', mimeType: 'application/octet-stream', buffer: npy([3], [1.5, 2.5, 3.5]) });
  await page.getByText('three.npy: float32, 3').waitFor();
  assert.deepEqual(await values(page), [1.5, 2.5, 3.5]);
  await chosen.setInputFiles({ name: 'two.safetensors', mimeType: 'application/octet-stream', buffer: safetensors({ weight: [7, 8], bias: [9] }) });
  await page.locator('#input-0-tensor').selectOption('bias');
  assert.deepEqual(await values(page), [9]);
  await chosen.setInputFiles({ name: 'bad.npy', mimeType: 'application/octet-stream', buffer: Buffer.from('this is no array') });
  await page.locator('.drop .wrong').getByText(/^bad\.npy: /).waitFor();
  assert.equal(await chosen.inputValue(), '', 'a refused file leaves none');
  await page.getByText('Select a file.').or(page.getByText('x: select a file.')).first().waitFor();
  assert.equal(await page.getByRole('button', { name: 'Calculate' }).isDisabled(), true);
});

scenario('a file dropped on any input makes it a file', fresh(), async (page) => {
  const transfer = await page.evaluateHandle((data) => {
    const carried = new DataTransfer();
    carried.items.add(new File([new Uint8Array(data)], 'late.npy'));
    return carried;
  }, [...npy([2], [6, 7])]);
  await page.locator('fieldset.input').first().dispatchEvent('drop', { dataTransfer: transfer });
  await page.getByText('late.npy: float32, 2').waitFor();
  assert.equal(await page.locator('#input-0-source').inputValue(), 'file');
  assert.deepEqual(await values(page), [6, 7]);
});

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let i = 0; i < 8; i++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

// As numpy.savez writes it: a zip archive of .npy files, not compressed.
function npz(arrays) {
  const parts = [];
  const directory = [];
  let at = 0;
  for (const [name, data] of Object.entries(arrays)) {
    const file = Buffer.from(`${name}.npy`);
    const facts = Buffer.alloc(22);
    facts.writeUInt16LE(20, 0);
    facts.writeUInt32LE(crc32(data), 10);
    facts.writeUInt32LE(data.length, 14);
    facts.writeUInt32LE(data.length, 18);
    const lengths = Buffer.from([file.length, 0, 0, 0]);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(at, 10);
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), facts, lengths, file, data]);
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x00', 'latin1'), facts, lengths, place, file]));
    parts.push(local);
    at += local.length;
  }
  const list = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(directory.length, 8);
  end.writeUInt16LE(directory.length, 10);
  end.writeUInt32LE(list.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...parts, list, end]);
}

scenario('a .npz file offers its arrays', fresh(), async (page) => {
  await page.locator('#input-0-source').selectOption('file');
  await page.locator('#input-0-file').setInputFiles({ name: 'pair.npz', mimeType: 'application/octet-stream', buffer: npz({ w: npy([2], [7, 8]), b: npy([1], [9]) }) });
  await page.locator('#input-0-tensor').selectOption('w');
  await page.getByText(/^pair\.npz: float32, 2: 7, 8/).waitFor();
  assert.deepEqual(await values(page), [7, 8]);
});

scenario('a .csv file is read with its head left out', fresh(), async (page) => {
  await page.locator('#input-0-source').selectOption('file');
  await page.locator('#input-0-file').setInputFiles({ name: 'table.csv', mimeType: 'text/csv', buffer: Buffer.from('height,width\r\n1.5,2\r\n3,4.25\r\n') });
  await page.getByText(/2 × 2, all stored exactly in float32; the first row, which has no numbers, is left out/).waitFor();
  assert.deepEqual(await values(page), [1.5, 2, 3, 4.25]);
});

const pasted = [
  ['tensor([[1., 2.],\n        [3., 4.]])', [1, 2, 3, 4]], ["tensor([1, 2], device='cuda:0', dtype=torch.int32)", [1, 2]], ['array([[1, 2],\n       [3, 4]], dtype=float32)', [1, 2, 3, 4]],
  ['[[1. 2.]\n [3. 4.]]', [1, 2, 3, 4]], ['1;2\n3;4', [1, 2, 3, 4]], ['1,5;2\n2,5;3', [1.5, 2, 2.5, 3]], ['1 2; 3 4', [1, 2, 3, 4]], ['"1","2"', [1, 2]],
];
scenario('text is pasted as Python, PyTorch, NumPy and spreadsheets write it', fresh(), async (page) => {
  await page.locator('#input-0-source').selectOption('paste');
  await page.locator('#input-0-dtype').selectOption('float32');
  for (const [text, wanted] of pasted) {
    await page.locator('#input-0-paste').fill(text);
    assert.deepEqual(await values(page), wanted, text);
  }
  await page.locator('#input-0-paste').fill('[1, 2, ..., 9]');
  await page.getByText(/abbreviated with "\.\.\."; print the whole tensor/).first().waitFor();
});

scenario('the shape of a tile fits its field, and generated values are shown before the run', fresh('#op=identity&i.x=random:uniform:1:0:1&i.x.shape=1,1,32,32&i.x.dtype=float32'), async (page) => {
  await page.locator('#input-0-shape').fill('16, 128, 1024, 1024');
  const fits = await page.locator('#input-0-shape').evaluate((field) => field.scrollWidth <= field.clientWidth);
  assert.ok(fits, 'the text is not cut off');
  await page.locator('#input-0-shape').fill('1, 1, 32, 32');
  await page.getByText(/^1,024 elements: 0\.\d+, 0\.\d+, 0\.\d+, 0\.\d+ …$/).waitFor();
});

scenario('a dropped file is taken', fresh(), async (page) => {
  await page.locator('#input-0-source').selectOption('file');
  const path = join(server.folder, 'dropped.npy');
  writeFileSync(path, npy([2], [4, 5]));
  const bytes = [...npy([2], [4, 5])];
  const transfer = await page.evaluateHandle((data) => {
    const carried = new DataTransfer();
    carried.items.add(new File([new Uint8Array(data)], 'dropped.npy'));
    return carried;
  }, bytes);
  await page.locator('.drop').dispatchEvent('drop', { dataTransfer: transfer });
  await page.getByText('dropped.npy: float32, 2').waitFor();
  assert.deepEqual(await values(page), [4, 5]);
});

scenario('inputs can be added and removed where an op takes any number', fresh('#op=concat'), async (page) => {
  const count = () => page.locator('fieldset.input:not(.parameters)').count();
  assert.equal(await count(), 2);
  await page.getByRole('button', { name: /^Add input/ }).click();
  assert.equal(await count(), 3);
  await calculate(page);
  assert.match(await (await outcome(page)).innerText(), /96 × 32/);
  await page.getByRole('button', { name: /^Remove input/ }).click();
  assert.equal(await count(), 2);
});

// The page rounds while one types, the server when it computes: they must agree for every dtype.
test('what the page says is stored is what the server stores', async () => {
  const { quantise } = await load('quantise');
  const given = [0.1, -0.3, 1.9999999, 1000.7, -7.5, 0.5, 3.14159, 2.71828, 1e-3, 65519, 0.0078125, 123.456, -0.001, 0.75, 33.3, -99.9, 5e-8, 6.1e4];
  for (const dtype of ['bfloat16', 'float16', 'float32', 'bfloat8_b', 'bfloat4_b']) {
    const answer = await server.post('/api/execute', { operation: 'identity', inputs: [{ value: given, dtype }], output: 'full', compare: false });
    // The server writes the shortest text that means the value in its dtype.
    assert.deepEqual(quantise(given, dtype).map((each) => Math.fround(each) + 0), answer.full_output.map((each) => Math.fround(Number(each)) + 0), dtype);
  }
});

test('the names the page asks for are those the server asks for', async () => {
  const { freeNames } = await load('expression');
  const sources = ['a + b', 'y = a @ b; y / norm(y)', 'x.sum(axis=0) + x.T', 'v, i = top_k(x, 3); v / sum(v)', 'cast(z, bfloat16) + pi', 'x[0, 1:n]', 'softmax(q @ k.T / sqrt(64), axis=-1)', 'x = x + 1\nx * w'];
  for (const expression of sources) {
    const answer = await server.post('/api/check', { expression, inputs: {} });
    assert.deepEqual(freeNames(expression), answer.free_names, expression);
  }
});
