// How it looks and weighs: both themes, two widths, accessibility, the policy, the bytes.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { calculate, calculator, launch, outcome, require, root, scenario, screenshots, Server, visit } from './harness.mjs';

const browser = await launch();
const server = await Server.start('--sim', 'wormhole,open=50ms,close=20ms', '--models', join(root, 'tests/fixtures/models'));
const kDevice = await server.simulated();
const axe = require.resolve('axe-core/axe.min.js');
const kWidths = { narrow: { width: 360, height: 780 }, wide: { width: 1440, height: 1000 } };

async function check(page, what) {
  // The policy of the page forbids foreign scripts; the test may add its own.
  await page.evaluate(require('fs').readFileSync(axe, 'utf8'));
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html.slice(0, 160)} (${node.any.concat(node.all, node.none).map((each) => each.message).join('; ').slice(0, 200)})`).join('\n  ')}`);
  assert.deepEqual(told, [], what);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(overflow <= 0, `${what}: wider than the window by ${overflow}`);
}

for (const colorScheme of ['light', 'dark']) {
  for (const [name, viewport] of Object.entries(kWidths)) {
    const look = { viewport, colorScheme };
    const shot = (page, what) => screenshots && page.screenshot({ path: join(screenshots, `${what}-${name}-${colorScheme}.png`), fullPage: true });

    scenario(`the calculator, ${name} and ${colorScheme}, reads well and breaks no rule of axe-core`, () => calculator(browser, server, '#op=gelu&i.x=random:normal:1:0:2&i.x.shape=32,32&i.x.dtype=bfloat16', look), async (page) => {
      await page.getByText(/^Gives 32/).waitFor();
      await calculate(page);
      const card = await outcome(page);
      await shot(page, 'calculator');
      await check(page, 'a result');
      for (const tab of ['Heat map', 'Histogram', 'Errors', 'Inputs', 'Log']) {
        await card.getByRole('tab', { name: tab }).click();
        if (tab === 'Heat map') await shot(page, 'heat-map');
        if (tab === 'Errors') await shot(page, 'errors');
        if (name === 'wide') await check(page, tab);
      }
      await page.getByRole('combobox', { name: 'Operation' }).fill('soft');
      await page.getByRole('listbox', { name: 'Operations' }).getByRole('option').first().waitFor();
      await shot(page, 'search');
      if (name === 'wide') await check(page, 'the search');
      await page.keyboard.press('Escape');
      await page.getByRole('tab', { name: 'Expression' }).click();
      await page.getByRole('textbox', { name: 'Expression' }).fill('y = gelu(x @ x.T + 0.5)  # a layer\nsofmax(y, axis=-1) * 0.5');
      await page.locator('.t-wrong').waitFor();
      await shot(page, 'expression');
      await check(page, 'an expression');
      await page.getByRole('button', { name: 'Code' }).click();
      await check(page, 'the code');
      await page.keyboard.press('Escape');
    });

    scenario(`several devices, ${name} and ${colorScheme}, read well and break no rule of axe-core`, () => calculator(browser, server, `#op=matmul&i.a=random:normal:1:0:1&i.a.shape=2,128,96&i.a.dtype=bfloat16&i.b=random:normal:2:0:1&i.b.shape=96,80&i.b.dtype=bfloat16&device=cpu:0,${kDevice}&runs=10`, look), async (page) => {
      await page.getByText(/^Gives 2/).waitFor();
      await calculate(page);
      await page.getByText(/Fastest of 9 repeats/).waitFor();
      await page.waitForFunction(() => !/running|queued|repeating/.test(document.querySelector('.side-table').textContent));
      await shot(page, 'compare');
      await check(page, 'several devices');
      await page.locator('#input-0-seed').fill('5');
      await page.getByText('The form has changed since this was computed.').waitFor();
      await page.getByRole('button', { name: 'Rows below' }).click();
      await page.getByText(/Rows 0 to 11 of 128/).first().waitFor();
      await shot(page, 'changed');
      await check(page, 'a result that is not of the form');
      await page.getByRole('tab', { name: 'Expression' }).click();
      await page.getByRole('textbox', { name: 'Expression' }).press('Control+End');
      await page.keyboard.type(' + lay');
      await page.getByRole('listbox', { name: 'Completions' }).waitFor();
      await shot(page, 'completion');
      await check(page, 'completions');
    });

    scenario(`the dashboard, ${name} and ${colorScheme}, reads well and breaks no rule of axe-core`, () => visit(browser, server, '/devices', look), async (page) => {
      for (let i = 0; i < 3; i++) await server.post('/api/execute', { expression: 'rand([256, 256]) @ rand([256, 256])', inputs: {}, device: kDevice, compare: false });
      await page.getByRole('button', { name: 'Zoom in' }).click();
      await page.getByText('Last events').click();
      await page.getByRole('region', { name: 'Last events' }).getByText('ran').first().waitFor();
      await shot(page, 'devices');
      await check(page, 'the dashboard');
    });

    scenario(`the models, ${name} and ${colorScheme}, read well and break no rule of axe-core`, () => visit(browser, server, '/models', look), async (page) => {
      await page.getByRole('button', { name: /^words/ }).click();
      await page.getByLabel('Texts, one per line').fill('a b\nb c d\ne f\na a a');
      await page.getByRole('button', { name: 'Compute vectors' }).click();
      await page.locator('.plot circle').nth(3).waitFor();
      await shot(page, 'models');
      await check(page, 'the models');
    });
  }
}

scenario('the theme button goes from the system to light to dark, and is remembered', () => calculator(browser, server, '', { colorScheme: 'dark' }), async (page) => {
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await ground();
  await page.getByRole('button', { name: /^Theme: system/ }).click();
  const light = await ground();
  assert.notEqual(light, dark);
  await page.getByRole('button', { name: /^Theme: light/ }).click();
  assert.equal(await ground(), dark);
  await page.reload();
  await page.getByRole('button', { name: /^Theme: dark/ }).waitFor();
});

scenario('a computation needs no mouse', () => calculator(browser, server), async (page) => {
  const focused = () => page.evaluate(() => document.activeElement?.id || document.activeElement?.textContent);
  await page.keyboard.press('Tab');
  assert.match(await focused(), /Skip to the content/);
  for (let i = 0; i < 20 && (await focused()) !== 'op'; i++) await page.keyboard.press('Tab');
  assert.equal(await focused(), 'op');
  await page.keyboard.type('maximum');
  await page.keyboard.press('Enter');
  for (let i = 0; i < 40 && (await focused()) !== 'Calculate'; i++) await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  assert.equal(await (await outcome(page)).locator('.big.number').first().innerText(), '2');
  await page.getByRole('status').filter({ hasText: /matches/ }).first().waitFor({ state: 'attached' });
});

scenario('nothing leaves the machine, and no script or style is inline', () => calculator(browser, server), async (page) => {
  await page.getByRole('link', { name: 'Devices' }).click();
  await page.getByRole('article').first().waitFor();
  const foreign = page.requests.filter((url) => !url.startsWith(server.url));
  assert.deepEqual(foreign, []);
  const html = await (await fetch(`${server.url}/`)).text();
  assert.doesNotMatch(html, /<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/);
  const policy = (await fetch(`${server.url}/`)).headers.get('content-security-policy');
  assert.doesNotMatch(policy, /unsafe|\*|https?:/);
  assert.match(policy, /script-src 'self'(;|$)/);
  assert.match(policy, /style-src 'self'(;|$)/);
});

test('the first paint needs less than 100 kB, compressed', async () => {
  const { get } = await import('node:http');
  const weight = (path) => new Promise((resolve, reject) => {
    get(server.url + path, { headers: { 'Accept-Encoding': 'gzip' } }, (response) => {
      let bytes = 0;
      const chunks = [];
      assert.equal(response.headers['content-encoding'], 'gzip', path);
      response.on('data', (chunk) => (bytes += chunk.length, chunks.push(chunk))).on('end', () => resolve({ bytes, body: Buffer.concat(chunks) }));
    }).on('error', reject);
  });
  const page = await weight('/');
  const html = require('zlib').gunzipSync(page.body).toString();
  const files = [...html.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map((match) => match[1]);
  assert.ok(files.length >= 2);
  let total = page.bytes;
  for (const file of files) total += (await weight(file)).bytes;
  console.log(`first paint: ${total} bytes in ${files.length + 1} files`);
  assert.ok(total < 100_000, `${total} bytes`);
});

test('files that never change are kept, the page itself is asked for by its tag', async () => {
  const html = await fetch(`${server.url}/`);
  const tag = html.headers.get('etag');
  assert.ok(tag);
  assert.equal((await fetch(`${server.url}/`, { headers: { 'If-None-Match': tag } })).status, 304);
  const asset = /src="(\/assets\/[^"]+)"/.exec(await html.text())[1];
  assert.match((await fetch(server.url + asset)).headers.get('cache-control'), /immutable/);
});
