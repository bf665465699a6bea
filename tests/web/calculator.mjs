// The calculator: choosing, computing, reading, sharing.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { calculate, calculator, launch, outcome, scenario, Server } from './harness.mjs';

const browser = await launch();
const server = await Server.start();
const fresh = (hash) => () => calculator(browser, server, hash);
const search = (page) => page.getByRole('combobox', { name: 'Operation' });
const hits = (page) => page.getByRole('listbox', { name: 'Operations' }).getByRole('option');

scenario('the search finds by name, alias and category, and works from the keyboard', fresh(), async (page) => {
  const box = search(page);
  await box.fill('SOFTM');
  const first = hits(page).first();
  assert.match(await first.innerText(), /softmax/);
  assert.equal(await first.locator('mark').innerText(), 'softm');
  assert.match(await first.innerText(), /normalization/);
  await box.fill('arccos');
  assert.match(await hits(page).first().innerText(), /acos\s*= arccos/);
  await box.fill('no such thing');
  await page.getByText('No operations found').first().waitFor();
  await box.fill('soft');
  const count = await hits(page).count();
  await page.keyboard.press('ArrowUp');
  assert.equal(await hits(page).nth(count - 1).getAttribute('aria-selected'), 'true');
  await page.keyboard.press('ArrowDown');
  assert.equal(await hits(page).first().getAttribute('aria-selected'), 'true');
  assert.equal(await box.getAttribute('aria-activedescendant'), await hits(page).first().getAttribute('id'));
  await page.keyboard.press('Enter');
  assert.equal(await box.inputValue(), 'softmax');
  await box.fill('gel');
  await page.keyboard.press('Escape');
  assert.equal(await box.inputValue(), 'softmax');
  assert.equal(await page.getByRole('listbox', { name: 'Operations' }).isVisible(), false);
  await box.fill('gel');
  await page.keyboard.press('Tab');
  assert.equal(await page.getByRole('listbox', { name: 'Operations' }).isVisible(), false);
  await box.click();
  await page.getByText('chosen by the server').click();
  assert.equal(await page.getByRole('listbox', { name: 'Operations' }).isVisible(), false);
});

scenario('an op shows its formula, and computes what it says', fresh(), async (page) => {
  await search(page).fill('squared_difference');
  await page.keyboard.press('Enter');
  await page.locator('.formula').getByText('(x − y)', { exact: false }).or(page.locator('.formula')).first().waitFor();
  await page.locator('#input-0-value').fill('7');
  await page.locator('#input-1-value').fill('4');
  await page.getByText(/^Gives 32 × 32 bfloat16/).waitFor();
  await calculate(page);
  const card = await outcome(page);
  assert.equal(await card.locator('.big.number').first().innerText(), '9');
  assert.equal(await card.locator('.big.number').nth(1).innerText(), '9');
  assert.match(await card.innerText(), /matches the reference/);
  assert.match(await card.innerText(), /32 × 32 · bfloat16 · 2\.00 KiB/);
});

// The worked examples of the calculator this one replaces.
const worked = [
  ['addalpha', ['1', '2'], { alpha: '3' }, '7'], ['subalpha', ['10', '2'], { alpha: '3' }, '4'], ['addcmul', ['1', '2', '3'], { value: '5' }, '31'],
  ['addcdiv', ['10', '6', '2'], { value: '2' }, '16'], ['heaviside', ['0'], {}, undefined], ['threshold', ['0.5'], { threshold: '1', value: '99' }, '99'],
];
scenario('parameters have their defaults and bounds, and change the result', fresh(), async (page) => {
  for (const [op, values, parameters, expected] of worked) {
    if (expected === undefined) continue;
    await search(page).fill(op);
    await page.keyboard.press('Enter');
    for (const [i, value] of values.entries()) await page.locator(`#input-${i}-value`).fill(value);
    for (const [name, value] of Object.entries(parameters)) {
      assert.notEqual(await page.locator(`#parameter-${name}`).getAttribute('placeholder'), '', `${op} shows the default of ${name}`);
      await page.locator(`#parameter-${name}`).fill(value);
    }
    await calculate(page);
    await page.waitForFunction(([wanted]) => document.querySelector('.result .big.number')?.textContent === wanted && !document.querySelector('[aria-busy=true]'), [expected]);
  }
  await search(page).fill('softmax');
  await page.keyboard.press('Enter');
  await page.locator('#parameter-axis').fill('1.5');
  await page.getByText('axis must be an integer').first().waitFor();
  assert.equal(await page.getByRole('button', { name: 'Calculate' }).isDisabled(), true);
});

scenario('Ctrl + Enter computes from any field', fresh('#op=sum&i.x=constant:2&i.x.shape=3&i.x.dtype=float32'), async (page) => {
  await page.getByText(/^Gives /).waitFor();
  await page.locator('#input-0-value').press('Control+Enter');
  assert.equal(await (await outcome(page)).locator('.big.number').first().innerText(), '6');
  await page.locator('#parameter-axis').press('Control+Enter');
  await page.waitForFunction(() => document.querySelectorAll('.entry').length === 2);
});

scenario('parameters say what to write, and no bounds that nobody would cross', fresh('#op=sum'), async (page) => {
  const note = await page.locator('#parameter-axis-note').innerText();
  assert.match(note, /a list such as 0, 1/);
  assert.doesNotMatch(note, /-\d|\d to \d/);
  for (const [op, name] of [['layer_norm', 'eps'], ['one_hot', 'classes']]) {
    await search(page).fill(op);
    await page.keyboard.press('Enter');
    assert.doesNotMatch(await page.locator(`#parameter-${name}-note`).innerText(), /e-3\d|\d{7}/, `${op} ${name}`);
  }
  await page.getByText('Give a value for classes.').waitFor();
  await search(page).fill('celu');
  await page.keyboard.press('Enter');
  assert.match(await page.locator('#parameter-alpha-note').innerText(), /more than 0$/);
});

scenario('an op for integers starts with integers', fresh('#op=gcd'), async (page) => {
  await page.locator('#input-0-value').fill('12');
  await page.locator('#input-1-value').fill('18');
  assert.equal(await page.locator('#input-0-dtype').inputValue(), 'int32');
  await calculate(page);
  assert.equal(await (await outcome(page)).locator('.big.number').first().innerText(), '6');
});

scenario('the views of a result: table, heat map, histogram, errors, inputs, log', fresh('#op=sin&i.x=random:uniform:3:-3:3&i.x.shape=40,20&i.x.dtype=bfloat16'), async (page) => {
  await calculate(page);
  const card = await outcome(page);
  const tab = (name) => card.getByRole('tab', { name }).click();
  assert.equal(await card.locator('.grid-table tbody tr').count(), 12);
  await card.getByRole('button', { name: 'Show 40 × 20' }).click();
  assert.equal(await card.locator('.grid-table tbody tr').count(), 40);
  await tab('Heat map');
  const map = card.getByRole('slider');
  const before = await map.getAttribute('aria-valuetext');
  await map.focus();
  await page.keyboard.press('ArrowRight');
  assert.match(await map.getAttribute('aria-valuetext'), /^\[0, 1\] is -?[\d.]+/);
  assert.notEqual(await map.getAttribute('aria-valuetext'), before);
  const painted = await card.locator('canvas').evaluate((canvas) => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size);
  assert.ok(painted > 20, 'the heat map has colours');
  await tab('Histogram');
  assert.equal(await card.locator('.bars rect').count(), 32);
  await tab('Errors');
  const errors = await card.getByRole('tabpanel').innerText();
  for (const name of ['Largest error', 'Relative', 'In ULP', 'Correlation', 'Beyond tolerance']) assert.ok(errors.includes(name), `${name} is shown`);
  await tab('Inputs');
  assert.match(await card.getByRole('tabpanel').innerText(), /x\s+40 × 20\s+bfloat16/);
  await card.getByRole('tab', { name: 'Inputs' }).focus();
  await page.keyboard.press('ArrowRight');
  assert.ok((await card.getByRole('list', { name: 'Log' }).locator('li').count()) > 0, 'the log has lines');
  assert.match(await card.locator('.timebar').innerText(), /Computing/);
});

scenario('NaN and infinities are shown as what they are', fresh('#op=log&i.x=list:[1,0,-1]&i.x.shape=&i.x.dtype=float32'), async (page) => {
  await calculate(page);
  const card = await outcome(page);
  assert.deepEqual((await card.locator('.grid-table tbody td').allInnerTexts()).map((text) => text.toLowerCase().replace('infinity', 'inf')), ['0', '-inf', 'nan']);
  assert.match(await card.innerText(), /matches the reference/);
});

scenario('an expression: colours, inputs, the error at its column, Ctrl + Enter', fresh(), async (page) => {
  await page.getByRole('tab', { name: 'Expression' }).click();
  const editor = page.getByRole('textbox', { name: 'Expression' });
  await editor.fill('softmax(q @ k.T) + sofmax(q)');
  await page.getByText("Column 20: Unknown op 'sofmax'.").waitFor();
  assert.equal(await page.locator('.t-wrong').innerText(), 'sofmax');
  await page.locator('#expression-note').getByText(/Unknown op 'sofmax'\. Did you mean 'softmax'\?/).waitFor();
  assert.equal(await page.locator('.t-op').first().innerText(), 'softmax');
  await editor.fill('s = softmax(q @ k.T, axis=-1)\nsum(s, axis=-1)');
  assert.deepEqual(await page.locator('.input-name').allInnerTexts(), ['q', 'k']);
  await page.getByText(/^Gives 4 float32/).waitFor();
  await editor.press('Control+Enter');
  const card = await outcome(page);
  assert.match(await card.locator('.big.number').first().innerText(), /^(1|0\.99999|1\.0000)/);
});

scenario('what others wrote is shown as text, never run', fresh(`#expr=${encodeURIComponent('<img src=x onerror="window.harmed=1"> + x')}&op=%3Cb%3E`), async (page) => {
  await page.locator('#expression-note .wrong').waitFor();
  assert.equal(await page.locator('main img').count(), 0);
  assert.equal(await page.evaluate(() => window.harmed), undefined);
  await page.goto(`${server.url}/#op=${encodeURIComponent('<img src=x onerror="window.harmed=1">')}`);
  await page.getByText("Unknown operation '<img").first().waitFor();
  assert.equal(await page.evaluate(() => window.harmed), undefined);
});

scenario('a result is downloaded as .npy and as .safetensors', fresh('#op=add&i.x=constant:1&i.x.shape=3,5&i.x.dtype=float32&i.y=constant:2&i.y.shape=3,5&i.y.dtype=float32'), async (page) => {
  await calculate(page);
  const card = await outcome(page);
  const fetched = async (name) => {
    const [download] = await Promise.all([page.waitForEvent('download'), card.getByRole('link', { name }).click()]);
    return readFileSync(await download.path());
  };
  const npy = await fetched('Download .npy');
  assert.equal(npy.subarray(1, 6).toString(), 'NUMPY');
  assert.match(npy.subarray(0, 128).toString('latin1'), /'descr': '<f4'.*'shape': \(3, 5\)/);
  assert.equal(npy.readFloatLE(npy.length - 4), 3);
  const safetensors = await fetched('.safetensors');
  assert.match(safetensors.subarray(8, 8 + Number(safetensors.readBigUInt64LE())).toString(), /"shape":\s*\[3,\s*5\]/);
});

scenario('the address holds the computation: another browser sees the same', fresh(), async (page) => {
  await search(page).fill('clamp');
  await page.keyboard.press('Enter');
  await page.locator('#input-0-source').selectOption('range');
  await page.locator('#input-0-start').fill('-2');
  await page.locator('#input-0-shape').fill('2, 3');
  await page.locator('#input-0-dtype').selectOption('float32');
  await page.locator('#parameter-min').fill('-1');
  await page.getByText(/^Gives 2 × 3 float32/).waitFor();
  const address = page.url();
  const other = await calculator(browser, server, new URL(address).hash);
  assert.equal(await other.locator('#input-0-start').inputValue(), '-2');
  assert.equal(await other.locator('#parameter-min').inputValue(), '-1');
  await calculate(other);
  assert.equal(await (await outcome(other)).locator('.big.number').first().innerText(), '-1');
  await other.context().close();
  await page.reload();
  await page.locator('#input-0-start').waitFor();
  assert.equal(page.url(), address);
});

scenario('a link to an expression works, and so does one to an op that is not there', fresh('#expr=a+%2B+b&i.a=scalar:2&i.a.dtype=float32&i.b=list:[1,2]&i.b.shape=&i.b.dtype=float32'), async (page) => {
  await calculate(page);
  assert.equal(await (await outcome(page)).locator('.big.number').first().innerText(), '3');
  await page.goto(`${server.url}/#op=nonsense`);
  await page.getByText("Unknown operation 'nonsense'.").first().waitFor();
});

scenario('the history brings a computation back, and can be cleared', fresh('#op=exp&i.x=constant:1&i.x.shape=2&i.x.dtype=float32'), async (page) => {
  await calculate(page);
  await outcome(page);
  await search(page).fill('cos');
  await page.keyboard.press('Enter');
  await calculate(page);
  await page.locator('.entry').nth(1).waitFor();
  await page.locator('.entry').nth(1).click();
  assert.equal(await search(page).inputValue(), 'exp');
  await page.reload();
  await page.locator('.entry').nth(1).waitFor();
  await page.getByRole('button', { name: 'Clear' }).click();
  assert.equal(await page.locator('.entry').count(), 0);
});

scenario('the header names the machine, the footer the build', fresh(), async (page) => {
  await page.waitForFunction(() => document.querySelector('#machine-type')?.textContent?.length > 2);
  assert.match(await page.locator('.commit').innerText(), /^Tenon \d+\.\d+\.\d+/);
});

scenario('a problem can be reported, and stays on the machine', fresh('#op=add'), async (page) => {
  await calculate(page);
  await outcome(page);
  await page.getByRole('button', { name: 'Report a problem' }).click();
  assert.equal(await page.getByRole('button', { name: 'Save the report' }).isDisabled(), true);
  await page.getByLabel('What did you expect').fill('1 + 2 should be 4 <b>surely</b>');
  await page.getByRole('button', { name: 'Save the report' }).click();
  await page.getByRole('status').filter({ hasText: /[Ss]aved as/ }).waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
});

scenario('the list of devices comes in without moving the button', fresh('#op=add'), async (page) => {
  const place = async () => {
    await page.getByText(/^Gives /).waitFor();
    return page.getByRole('button', { name: 'Calculate' }).boundingBox();
  };
  const before = await place();
  let answer;
  const asked = new Promise((resolve) => (answer = resolve));
  await page.route('**/api/events*', async (route) => {
    await asked;
    await route.continue();
  });
  await page.reload();
  await page.locator('.devices-choice .awaited').first().waitFor();
  assert.deepEqual(await place(), before);
  answer();
  await page.locator('.devices-choice .awaited').first().waitFor({ state: 'detached' });
  assert.deepEqual(await place(), before);
});

const several = await Server.start('--sim', 'wormhole');
scenario('what each device would take comes in without moving the button', () => calculator(browser, several, '#op=add'), async (page) => {
  let answer;
  const asked = new Promise((resolve) => (answer = resolve));
  await page.route('**/api/check*', async (route) => {
    await asked;
    await route.continue();
  });
  await page.reload();
  await page.locator('.devices-choice .awaited').first().waitFor({ state: 'detached' });
  const button = page.getByRole('button', { name: 'Calculate' });
  const before = await button.boundingBox();
  answer();
  await page.locator('.devices-choice summary').waitFor();
  await page.getByText(/^Gives /).waitFor();
  assert.deepEqual(await button.boundingBox(), before);
});
