// Devices that others want too, and devices that fail.
import assert from 'node:assert/strict';
import { calculate, calculator, close, launch, outcome, scenario, Server } from './harness.mjs';

const browser = await launch();
// Slow to open, so that there is a queue to look at.
const slow = await Server.start('--sim', 'wormhole,open=2s,close=10ms', '--set', 'keep_open=on_demand');
const kDevice = await slow.simulated();
const fragile = await Server.start('--sim', 'wormhole,open=10ms,close=10ms,script=ok:run+lost_mid_run:run');
// Another program on the same machine, with the same device.
const neighbour = await Server.startIn(slow, '--sim', 'wormhole,open=2s,close=10ms', '--set', 'keep_open=on_demand');
const on = (server) => () => calculator(browser, server, `#op=add&device=${kDevice}`);

scenario('two users at once: the second sees its place in the queue, then its result', on(slow), async (ada) => {
  const bob = await on(slow)();
  await calculate(ada);
  await ada.locator('.result').getByText(/Opening on/).waitFor();
  await calculate(bob);
  await bob.locator('.result').getByText(`Position 2 in the queue for ${kDevice}: 1 on this server ahead of you.`).waitFor();
  assert.equal(await bob.locator('.stages [aria-current=step]').innerText(), 'Queued');
  assert.match(await bob.getByRole('button', { name: 'Computing …' }).innerText(), /Computing/);
  for (const page of [ada, bob]) assert.equal(await (await outcome(page, kDevice)).locator('.big.number').first().innerText(), '3');
  await close(bob);
});

scenario('a device that another program holds is waited for, and its holder is named', on(slow), async (page) => {
  const busy = neighbour.post('/api/execute', { operation: 'add', inputs: [{ value: 1 }, { value: 2 }], device: kDevice });
  await neighbour.until(kDevice, 'opening');
  await calculate(page);
  await page.locator('.result').getByText(`Position 2 in the queue for ${kDevice}: 1 in other programs ahead of you.`).waitFor();
  await page.locator('.result').getByText(`Held by pid ${neighbour.process.pid}`).waitFor();
  assert.equal(await (await outcome(page, kDevice)).locator('.big.number').first().innerText(), '3');
  assert.equal((await busy).success, true);
});

scenario('a device that another program holds is not reset', on(slow), async (page) => {
  const busy = neighbour.post('/api/execute', { operation: 'add', inputs: [{ value: 1 }, { value: 2 }], device: kDevice });
  await neighbour.until(kDevice, 'opening');
  await page.getByRole('banner').getByRole('button', { name: 'Reset' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Device').selectOption(kDevice);
  await dialog.getByRole('button', { name: 'Reset …' }).click();
  const confirm = dialog.getByRole('button', { name: `Yes, reset ${kDevice}` });
  const refusal = dialog.locator('.notice.bad');
  await confirm.or(refusal).first().waitFor();
  if (await confirm.count()) await confirm.click();
  await refusal.waitFor();
  assert.match(await refusal.innerText(), new RegExp(`${neighbour.process.pid}|another|holds|held`));
  assert.equal((await busy).success, true);
});

scenario('a computation is cancelled while it waits, and the device goes to the next', on(slow), async (ada) => {
  const bob = await on(slow)();
  await calculate(ada);
  await ada.locator('.result').getByText(/Opening on/).waitFor();
  await calculate(bob);
  await bob.locator('.result').getByText(/^Position 2 in the queue/).waitFor();
  await bob.getByRole('button', { name: 'Cancel' }).click();
  await bob.locator('.result .tag', { hasText: 'cancelled' }).waitFor();
  assert.equal(await bob.getByRole('button', { name: 'Calculate' }).isEnabled(), true);
  assert.equal(await (await outcome(ada, kDevice)).locator('.big.number').first().innerText(), '3');
  await close(bob);
});

scenario('a device lost in the middle of a run is an error with its log, and the next run works', on(fragile), async (page) => {
  await calculate(page);
  await (await outcome(page, kDevice)).locator('.big.number').first().waitFor();
  await calculate(page);
  const notice = page.locator('.result .notice');
  await notice.waitFor();
  assert.match(await notice.innerText(), /lost/i);
  await page.locator('.result .tag', { hasText: 'failed' }).waitFor();
  await calculate(page);
  await page.locator('.result .big.number').first().waitFor();
});
