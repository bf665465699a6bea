// Results one can trust: what a result is of, every digit of it, and every part of a large one.
import assert from 'node:assert/strict';
import { calculate, calculator, launch, outcome, scenario, Server } from './harness.mjs';

const browser = await launch();
const server = await Server.start();
const fresh = (hash) => () => calculator(browser, server, hash);
const cells = async (card) => card.locator('.grid-table tbody td').allInnerTexts();
const big = (card, i = 0) => card.locator('.big.number').nth(i).innerText();

scenario('the card says what it is of, and when the form has changed since', fresh('#op=clamp&i.x=range:-2:1&i.x.shape=2,3&i.x.dtype=float32&p.min=-1'), async (page) => {
  await calculate(page);
  const card = await outcome(page);
  assert.equal(await card.getByRole('heading', { level: 2 }).innerText(), 'clamp(range [2×3], min=-1)');
  assert.equal(await card.getByText('The form has changed since this was computed.').count(), 0);
  await page.locator('#input-0-start').fill('5');
  await card.getByRole('status').getByText('The form has changed since this was computed.').waitFor();
  assert.equal(await card.getByRole('heading', { level: 2 }).innerText(), 'clamp(range [2×3], min=-1)', 'the title stays what was computed');
  await card.getByRole('button', { name: 'Restore the form' }).click();
  assert.equal(await page.locator('#input-0-start').inputValue(), '-2');
  await card.getByText('The form has changed').waitFor({ state: 'detached' });
  await page.locator('#input-0-start').fill('5');
  await card.getByRole('button', { name: 'Update the result' }).focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('.result .big.number')?.textContent === '5');
  assert.equal(await page.getByText('The form has changed').count(), 0);
});

scenario('a result is there before it has been compared, and the judgement follows', fresh(`#expr=${encodeURIComponent('x @ x')}&i.x=normal:0:1&i.x.shape=900,900&i.x.dtype=float32`), async (page) => {
  await calculate(page);
  // Both at once: the value, and that it is still being compared.
  await page.waitForFunction(() => document.querySelector('.result .big.number')?.textContent && document.querySelector('.result .tag')?.textContent === 'comparing');
  const early = await big(page.locator('.result'));
  const card = await outcome(page);
  await card.getByText('matches the reference').waitFor({ timeout: 60_000 });
  assert.equal(await big(card), early, 'the value stays');
});

const exact = [
  ['bfloat16', '1.3125', '1.3125'], ['bfloat16', '0.1', '0.10009765625'], ['float16', '0.1', '0.0999755859375'], ['float32', '0.1', '0.1'], ['float64', '0.1', '0.1'],
  ['float64', '0.30000000000000004', '0.30000000000000004'], ['int64', '9007199254740993', '9007199254740993'], ['int64', '-9223372036854775808', '-9223372036854775808'],
  ['uint64', '18446744073709551615', '18446744073709551615'], ['int8', '-128', '-128'], ['bool', '1', 'true'], ['bfloat4_b', '0.75', '0.75'],
];
scenario('every value is shown exactly, and so is its reference', fresh('#op=identity'), async (page) => {
  for (const [dtype, given, shown] of exact) {
    await page.goto(`${server.url}/#op=identity&i.x=constant:${given}&i.x.shape=3&i.x.dtype=${dtype}`);
    await page.getByText(new RegExp(`^Gives 3 ${dtype}`)).waitFor();
    await calculate(page);
    await page.waitForFunction(([text]) => !document.querySelector('[aria-busy=true]') && document.querySelector('.result .big.number')?.textContent === text, [shown]);
    const card = await outcome(page);
    assert.match(await card.innerText(), /matches the reference/, `${dtype} ${given}`);
    if (/int|bool/.test(dtype)) assert.equal(await big(card, 1), shown, `the reference of ${dtype}`);
    assert.deepEqual([...new Set(await cells(card))], [shown], 'the table shows the same text');
  }
});

scenario('a list of large integers keeps every digit', fresh('#op=neg&i.x=list:[9007199254740993,-9007199254740995]&i.x.shape=&i.x.dtype=int64'), async (page) => {
  await calculate(page);
  assert.deepEqual(await cells(await outcome(page)), ['-9007199254740993', '9007199254740995']);
});

scenario('a sample of a large tensor is called one, and every part can be read', fresh('#op=identity&i.x=range:0:1&i.x.shape=2,3,200,150&i.x.dtype=int64'), async (page) => {
  await calculate(page);
  const card = await outcome(page);
  const note = card.locator('.slice-note');
  assert.match(await note.innerText(), /A sample at index 0, 0: 12 of 200 rows and 8 of 150 columns, evenly spread; the values are exact\./);
  const first = async () => (await cells(card))[0];
  const settled = (text) => page.waitForFunction(([wanted]) => document.querySelector('.slice-note').textContent.includes(wanted), [text]);
  await card.getByLabel('First row').fill('190');
  await card.getByLabel('First row').press('Enter');
  await settled('Rows 190 to 199 of 200, columns 0 to 7 of 150 at index 0, 0.');
  assert.equal(await first(), String(190 * 150));
  await card.getByRole('button', { name: 'Columns to the right' }).click();
  await settled('columns 8 to 15 of 150');
  assert.equal(await first(), String(190 * 150 + 8));
  await card.getByLabel('Axis 0, 0 to 1').fill('1');
  await card.getByLabel('Axis 1, 0 to 2').fill('2');
  await card.getByLabel('Axis 1, 0 to 2').press('Tab');
  await settled('at index 1, 2.');
  assert.equal(await first(), String(5 * 200 * 150 + 190 * 150 + 8));
  await page.getByRole('status').filter({ hasText: 'Rows 190 to 199' }).waitFor({ state: 'attached' });
  await card.getByRole('tab', { name: 'Heat map' }).click();
  await settled('at index 1, 2.');
  const map = card.getByRole('slider');
  await page.waitForFunction(() => document.querySelector('.heat').getAttribute('aria-valuetext').startsWith('[1, 2, 190, 8]'));
  assert.equal(await map.getAttribute('aria-valuetext'), `[1, 2, 190, 8] is ${5 * 200 * 150 + 190 * 150 + 8}`);
  await card.getByRole('button', { name: 'Sample' }).click();
  await settled('A sample at index 1, 2: 64 of 200 rows and 64 of 150 columns');
});

scenario('a result that is no longer kept says so', fresh('#op=identity&i.x=range:0:1&i.x.shape=200,200&i.x.dtype=float32'), async (page) => {
  await calculate(page);
  const card = await outcome(page);
  await page.route('**/api/results/**', (route) => route.fulfill({ status: 404, json: { status: 404, detail: 'unknown result', code: 'not_found' } }));
  await card.getByRole('button', { name: 'Rows below' }).click();
  await card.getByRole('alert').getByText(/these values are gone\. Press Calculate/).waitFor();
});

scenario('several results have their names', fresh(`#expr=${encodeURIComponent('values, indices = top_k(x, 2)')}&i.x=list:[5,1,7,3]&i.x.shape=&i.x.dtype=float32`), async (page) => {
  await calculate(page);
  const card = await outcome(page);
  const options = await card.getByLabel('Result', { exact: true }).locator('option').allInnerTexts();
  assert.deepEqual(options, ['values: float32 2', 'indices: int64 2']);
  await card.getByLabel('Result', { exact: true }).selectOption({ index: 1 });
  assert.equal(await big(card), '2');
  assert.deepEqual(await cells(card), ['2', '0']);
});

scenario('where the time went adds up', fresh('#op=add'), async (page) => {
  await calculate(page);
  const text = await (await outcome(page)).locator('.timebar').innerText();
  const unit = { ns: 1e-9, µs: 1e-6, ms: 1e-3, s: 1 };
  const times = [...text.matchAll(/([A-Za-z]+)\s+([\d.]+) (ns|µs|ms|s)\b/g)].map(([, name, number, of]) => [name, Number(number) * unit[of]]);
  const total = times.find(([name]) => name === 'total')[1];
  const sum = times.filter(([name]) => name !== 'total').reduce((all, [, seconds]) => all + seconds, 0);
  assert.ok(Math.abs(sum - total) < 0.05 * total, `${text}: ${sum} and ${total}`);
});

scenario('history: one press shows the result again, computing it if the page has not got it', fresh('#op=exp&i.x=constant:0&i.x.shape=2&i.x.dtype=float32'), async (page) => {
  await calculate(page);
  await outcome(page);
  await page.locator('.entry').first().waitFor();
  await page.locator('#input-0-value').fill('1');
  await calculate(page);
  await page.waitForFunction(() => document.querySelectorAll('.entry').length === 2);
  const jobs = () => page.requests.filter((url) => url.endsWith('/api/jobs')).length;
  const before = jobs();
  await page.locator('.entry').nth(1).click();
  await page.waitForFunction(() => document.querySelector('.result .big.number')?.textContent === '1');
  assert.equal(await page.locator('#input-0-value').inputValue(), '0');
  assert.equal(jobs(), before, 'the kept result is shown');
  await page.reload();
  await page.locator('.entry').nth(1).click();
  assert.equal(await big(await outcome(page)), '1');
  assert.ok(jobs() > before, 'without a kept result it is computed');
});

scenario('a request that could not run is not in the history', fresh(`#expr=${encodeURIComponent('x @ x')}&i.x=constant:1&i.x.shape=2,3&i.x.dtype=float32`), async (page) => {
  await calculate(page);
  await page.locator('.result .notice').getByText('The expression cannot be computed').waitFor();
  assert.equal(await page.locator('.entry').count(), 0);
});
