// The dashboard: cards, timeline, policy, ledger, reset; all live.
import assert from 'node:assert/strict';
import { calculate, calculator, launch, outcome, scenario, Server, visit } from './harness.mjs';

const browser = await launch();
const server = await Server.start('--sim', 'wormhole,open=50ms,close=50ms');
const kDevice = await server.simulated();
const bare = await Server.start();

async function dashboard(which = server) {
  const page = await visit(browser, which, '/devices');
  await page.getByRole('article').first().waitFor();
  return page;
}
const card = (page, id = kDevice) => page.getByRole('article', { name: `Device ${id}` });
const compute = (more = {}) => server.post('/api/execute', { operation: 'add', inputs: [{ value: 1, shape: [4] }, { value: 2, shape: [4] }], device: kDevice, ...more });
const fact = async (page, name, id) => card(page, id).locator('.facts > div', { hasText: name }).locator('dd').innerText();

scenario('each device has a card with state, memory, use, holders and waiters', () => dashboard(), async (page) => {
  const text = await card(page).innerText();
  for (const name of ['simulated', 'Simulated Wormhole', 'one program at a time', 'Total open time', 'Utilisation', 'Efficiency', 'Runs', 'Opened', 'Memory', 'Held by', 'Waiting']) {
    assert.ok(text.toLowerCase().includes(name.toLowerCase()), `${name} is on the card: ${text}`);
  }
  assert.match(await card(page, 'cpu:0').innerText(), /cpu:0/);
});

scenario('the card follows what happens without a reload', () => dashboard(), async (page) => {
  const runs = Number(await fact(page, 'Runs'));
  assert.equal((await compute()).success, true);
  await page.waitForFunction(([id, before]) => {
    const facts = [...document.querySelectorAll(`[aria-label="Device ${id}"] .facts > div`)];
    return Number(facts.find((each) => each.textContent.startsWith('Runs')).querySelector('dd').textContent) > before;
  }, [kDevice, runs]);
  assert.notEqual(await fact(page, 'Opened'), '0 ×');
  assert.match(await fact(page, 'Efficiency'), /%/);
});

scenario('the timeline shows openings and runs, zooms and moves', () => dashboard(), async (page) => {
  await compute();
  await page.getByText('Last events').click();
  const events = page.getByRole('region', { name: 'Last events' });
  await events.getByText('opened').first().waitFor();
  await events.getByText('ran').first().waitFor();
  const canvas = page.locator('.timeline canvas');
  const ink = () => canvas.evaluate((element) => {
    const { data } = element.getContext('2d').getImageData(0, 0, element.width, element.height);
    let sum = 0;
    for (let i = 0; i < data.length; i += 4) sum = (sum * 31 + data[i] * 3 + data[i + 1] * 5 + data[i + 2] * 7 + data[i + 3]) % 1000000007;
    return sum;
  });
  const shown = () => page.locator('#timeline-window').innerText();
  assert.match(await shown(), /^2 min 0 s up to now/);
  await page.getByRole('button', { name: 'Zoom in' }).click();
  await page.getByRole('button', { name: 'Zoom in' }).click();
  assert.match(await shown(), /^30\.0 s up to now/);
  await page.getByRole('button', { name: 'Earlier' }).click();
  assert.match(await shown(), /up to \d\d:\d\d:\d\d/);
  const still = await ink();
  await page.getByRole('button', { name: 'Zoom out' }).click();
  assert.match(await shown(), /^1 min 0 s/);
  await page.waitForFunction(() => true);
  assert.notEqual(await ink(), still, 'zooming redraws');
  await canvas.focus();
  await page.keyboard.press('+');
  assert.match(await shown(), /^30\.0 s/);
  await page.keyboard.press('End');
  assert.match(await shown(), /up to now/);
  assert.equal(await page.getByRole('button', { name: 'Live' }).getAttribute('aria-pressed'), 'true');
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + 300, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + 400, box.y + 20);
  await page.mouse.up();
  assert.match(await shown(), /up to \d\d:/, 'dragging moves the window');
  await page.getByRole('button', { name: 'All' }).click();
  assert.match(await shown(), /up to now/);
});

scenario('the keep-open policy shows its threshold and its cost over the best possible', () => dashboard(), async (page) => {
  await compute();
  const row = page.getByRole('region', { name: 'Keep-open policy by device' }).getByRole('row').filter({ hasText: kDevice });
  await row.getByText(/× *$/).first().waitFor();
  assert.match(await row.innerText(), /adaptive/);
});

scenario('the ledger has totals and a chart by day', () => dashboard(), async (page) => {
  await compute();
  const totals = page.getByRole('region', { name: 'Ledger totals' });
  const none = page.getByText('This server has no ledger.');
  await totals.or(none).first().waitFor();
  if (await none.count()) return; // built without SQLite
  await totals.getByText(kDevice).waitFor();
  await page.locator('.chart canvas').waitFor();
  await page.getByLabel('What the chart shows').selectOption('held_seconds');
  assert.match(await page.locator('.chart').getAttribute('aria-label'), /By day, \d+ days?: \S.* \d/);
});

scenario('a reset says what it does, asks, and does it', () => dashboard(), async (page) => {
  await card(page).getByRole('button', { name: `Reset ${kDevice}` }).click();
  const dialog = page.getByRole('dialog');
  assert.equal(await dialog.getByLabel('Device').inputValue(), kDevice);
  await dialog.getByRole('button', { name: 'Reset …' }).click();
  await dialog.getByRole('alert').waitFor();
  await dialog.getByRole('button', { name: `Yes, reset ${kDevice}` }).click();
  await dialog.getByRole('status').waitFor();
  await dialog.getByRole('button', { name: 'Close' }).click();
  assert.equal((await compute()).success, true, 'the device works afterwards');
});

scenario('a CPU has no reset, and a machine without a card says so', () => dashboard(bare), async (page) => {
  const { devices } = await (await fetch(`${bare.url}/api/devices`)).json();
  if (devices.some((device) => device.kind !== 'cpu')) return; // this machine has one
  assert.equal(await card(page, 'cpu:0').getByRole('button', { name: /Reset/ }).count(), 0);
  await page.getByRole('banner').getByRole('button', { name: 'Reset a device' }).click();
  await page.getByRole('dialog').getByText('There is no device to reset: this machine computes on its CPU.').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Reset …' }).count(), 0);
  await page.keyboard.press('Escape');
});

scenario('a reset can be called off', () => dashboard(), async (page) => {
  await page.getByRole('banner').getByRole('button', { name: 'Reset' }).click();
  await page.getByRole('button', { name: 'Reset …' }).click();
  await page.getByRole('dialog').getByRole('alert').waitFor();
  await page.getByRole('button', { name: 'Cancel' }).last().click();
  assert.equal(await page.getByRole('dialog').count(), 0);
});

scenario('without an accelerator the page says so, and what to do', () => dashboard(bare), async (page) => {
  const accelerators = (await (await fetch(`${bare.url}/api/devices`)).json()).devices.filter((device) => device.kind !== 'cpu');
  if (accelerators.length > 0) return; // this machine has one
  await page.getByText('No accelerator was found on this machine.').waitFor();
  const searched = page.getByRole('region', { name: 'Accelerators that were looked for' });
  const finding = { NVIDIA: /10de.*nvidia-driver/s, AMD: /1002.*amdgpu/s, Intel: /8086.*i915/s, Google: /1ae0.*TPU/s, Tenstorrent: /1e52.*tt-kmd/s };
  for (const [vendor, text] of Object.entries(finding)) {
    const row = searched.getByRole('row').filter({ has: page.getByRole('rowheader', { name: vendor, exact: true }) });
    assert.match((await row.innerText()).replace('no PCI bus is visible', '10de 1002 8086 1ae0 1e52'), text);
  }
  await page.getByRole('link', { name: 'Calculator' }).click();
  await page.getByText(/This machine has no accelerator; programs run on the CPU\.|^Auto chooses /).waitFor();
});

scenario('with an accelerator what was looked for is one press away', () => dashboard(), async (page) => {
  const searched = page.getByRole('region', { name: 'Accelerators that were looked for' });
  assert.equal(await searched.isVisible(), false);
  await page.getByText('Which accelerators were looked for').click();
  await searched.getByRole('rowheader', { name: 'Tenstorrent', exact: true }).waitFor();
});

scenario('the timeline has the time before this page, and holds of other programs', () => calculator(browser, server, `#op=add&device=${kDevice}`), async (page) => {
  await compute();
  await calculate(page);
  await outcome(page, kDevice);
  const neighbour = await Server.startIn(server, '--sim', 'wormhole,open=50ms,close=50ms', '--set', 'keep_open=always');
  assert.equal((await neighbour.post('/api/execute', { operation: 'add', inputs: [{ value: 1 }, { value: 2 }], device: kDevice })).success, true);
  await page.getByRole('link', { name: 'Devices' }).click();
  await page.getByText('Last events').click();
  const events = page.getByRole('region', { name: 'Last events' });
  const record = (await (await fetch(`${server.url}/api/timeline`)).json()).events;
  const first = record.find((event) => event.kind === 'ran');
  assert.ok(first.time < Date.now() / 1000);
  await events.getByRole('row').filter({ hasText: 'held by another program' }).filter({ hasText: `pid ${neighbour.process.pid}` }).first().waitFor();
  await page.waitForFunction(([count]) => document.querySelectorAll('[aria-label="Last events"] tbody tr').length >= count, [Math.min(50, record.length)]);
  await neighbour.end();
});

scenario('how auto chooses can be set for one request, and the result says what it cost', async () => calculator(browser, await Server.start('--sim', 'wormhole,open=20ms,close=10ms', '--set', 'allow_simulated=true', '--set', 'prices.sim:0=3.5', '--set', 'prefer=cpu')), async (page) => {
  await page.getByText(/^Auto chooses cpu:0: /).waitFor();
  await page.getByLabel('Auto chooses').selectOption({ label: 'a Tenstorrent card if possible' });
  await page.getByText(/^Auto chooses sim:0: /).waitFor();
  await page.waitForFunction(() => location.hash.includes('auto=prefer:tenstorrent'));
  await calculate(page);
  const result = await outcome(page, 'sim:0');
  await result.getByText(/Cost of this run: \$0\.0*[1-9]\d*/).waitFor();
  await page.getByLabel('Auto chooses').selectOption('fastest');
  await page.getByText(/^Auto chooses \S+: fastest/).waitFor();
  await calculate(page);
  await page.getByText(/^Auto chose \S+: fastest/).waitFor();
  await page.reload();
  assert.equal(await page.getByLabel('Auto chooses').inputValue(), 'fastest');
});

scenario('auto says what it took, and why', () => calculator(browser, server), async (page) => {
  await page.getByText(/^Auto (chooses|chose) \S+: .+/).waitFor();
  await calculate(page);
  await page.getByText(/^Auto chose \S+: .+/).waitFor();
  const { considered } = (await server.post('/api/check', { operation: 'add', inputs: [{ value: 1 }, { value: 2 }] })).route ?? {};
  if (!considered || considered.length < 2) return;
  await page.locator('.devices-choice summary').click();
  assert.ok((await page.locator('.devices-choice tbody tr').count()) >= 2, 'every device was considered');
});
