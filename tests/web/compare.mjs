// Several devices side by side, examples that compute when pressed, and the way of a first-time user.
import assert from 'node:assert/strict';
import { calculate, calculator, launch, npy, outcome, scenario, Server } from './harness.mjs';

const browser = await launch();
const server = await Server.start('--sim', 'wormhole,open=100ms,close=20ms', '--sim', 'gpu,open=20ms,open_fails=1', '--set', 'keep_open=always');
const kGood = 'sim:0';
const kBroken = 'sim:1';
const fresh = (hash) => () => calculator(browser, server, hash);
const table = (page) => page.getByRole('region', { name: 'Comparison of devices' });
const finished = (page) => page.waitForFunction(() => document.querySelector('.side-table') && !document.querySelector('[aria-busy=true]') && !/running|queued|repeating|sending/.test(document.querySelector('.side-table').textContent));
// The cells of a row by its name, one for each device.
const row = async (page, name) => table(page).getByRole('row').filter({ has: page.getByRole('rowheader', { name, exact: true }) }).getByRole('cell').allInnerTexts();

scenario('each device has a column, a failed one too, and the result of one is below', fresh(`#op=sqrt&i.x=constant:2&i.x.shape=4&i.x.dtype=float32&device=cpu:0,${kGood},${kBroken}`), async (page) => {
  await calculate(page);
  await finished(page);
  assert.deepEqual((await table(page).getByRole('columnheader').allInnerTexts()).slice(1).map((text) => text.split(/\s/)[0]), ['cpu:0', kGood, kBroken]);
  const outcomes = await row(page, 'Outcome');
  assert.match(outcomes[0], /✓ matches/);
  assert.match(outcomes[1], /✓ matches/);
  assert.match(outcomes[2], /failed\s+.*\S/s);
  const values = await row(page, 'First values');
  assert.equal(values[0], values[1]);
  assert.equal(values[2], '–');
  assert.match((await row(page, 'Waiting and opening'))[1], /(ms|s)$/);
  assert.ok((await row(page, 'Computing, relative')).includes('1.0 ×'));
  assert.equal(await page.locator('article.result').count(), 1, 'one result at a time, so that the page stays short');
  assert.ok((await page.locator('.outcome').boundingBox()).height < 1600);
  await page.getByRole('tab', { name: kBroken }).click();
  await page.getByRole('article', { name: `Result on ${kBroken}` }).locator('.notice').waitFor();
  await page.keyboard.press('ArrowLeft');
  assert.equal(await page.getByRole('article', { name: `Result on ${kGood}` }).locator('.big.number').first().innerText(), '1.4142135');
  assert.equal(await page.locator('.entry').count(), 1, 'one entry in the history');
  assert.match(await page.locator('.entry').innerText(), /cpu:0, sim:0, sim:1/);
});

scenario('repeats are timed apart from the first run', fresh(`#op=exp&i.x=constant:1&i.x.shape=64,64&i.x.dtype=float32&device=cpu:0,${kGood}`), async (page) => {
  await page.getByLabel('Runs').fill('0');
  await page.getByText('Runs must be an integer from 1 to 1000.').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Calculate' }).isDisabled(), true);
  await page.getByLabel('Runs').fill('5');
  await page.waitForFunction(() => location.hash.includes('runs=5'));
  await calculate(page);
  await finished(page);
  for (const text of await row(page, 'Computing again, fastest of 4')) assert.match(text, /(ns|µs|ms|s)$/);
  assert.ok((await row(page, 'Computing again, relative')).includes('1.0 ×'));
  await page.getByRole('article').getByText(/Fastest of 4 repeats: \S+ \S+ computing\./).waitFor();
});

scenario('one device can be repeated too', fresh('#op=exp&device=cpu:0&runs=3'), async (page) => {
  assert.equal(await page.getByLabel('Runs').inputValue(), '3');
  await calculate(page);
  await page.getByRole('article').getByText(/Fastest of 2 repeats/).waitFor();
});

scenario('examples compute when they are pressed', fresh(), async (page) => {
  const titles = await page.locator('.starters button').allInnerTexts();
  assert.ok(titles.length >= 3);
  for (const title of titles) {
    await page.evaluate(() => localStorage.clear());
    await page.goto('about:blank');
    await page.goto(server.url);
    await page.getByRole('button', { name: title }).press('Enter');
    assert.match(await (await outcome(page)).innerText(), /matches the reference/, title);
  }
});

scenario('the example of an op computes when it is pressed', fresh('#op=softmax'), async (page) => {
  await page.locator('.example').click();
  assert.match(await (await outcome(page)).innerText(), /matches the reference/);
});

// The first-time user: the product of two files on two devices, side by side. Every click, choice and file counts.
scenario('a product of two files on two devices takes at most 8 interactions', fresh(), async (page) => {
  let interactions = 0;
  const act = async (what) => (interactions++, what);
  const a = npy([2, 3], [1, 2, 3, 4, 5, 6]);
  const b = npy([3, 2], [1, 0, 0, 1, 1, 1]);
  await act(await page.getByRole('combobox', { name: 'Operation' }).fill('matmul'));
  await act(await page.keyboard.press('Enter'));
  const drop = async (index, name, buffer) => {
    const transfer = await page.evaluateHandle(([bytes, file]) => {
      const carried = new DataTransfer();
      carried.items.add(new File([new Uint8Array(bytes)], file));
      return carried;
    }, [[...buffer], name]);
    await page.locator('fieldset.input').nth(index).dispatchEvent('drop', { dataTransfer: transfer });
  };
  await act(await drop(0, 'a.npy', a));
  await page.getByText(/^a\.npy: float32, 2 × 3/).waitFor();
  await act(await drop(1, 'b.npy', b));
  await page.getByText(/^b\.npy: float32, 3 × 2/).waitFor();
  await act(await page.getByLabel('cpu:0').check());
  await act(await page.getByLabel(kGood).check());
  await act(await calculate(page));
  await finished(page);
  const values = await row(page, 'First values');
  assert.deepEqual(values[0].split(/\s+/), ['4', '5', '10']);
  assert.equal(values[0], values[1]);
  console.log(`product of two files on two devices: ${interactions} interactions`);
  assert.ok(interactions <= 8, `${interactions} interactions`);
});
