// The server goes and comes back under an open page.
import assert from 'node:assert/strict';
import { calculate, calculator, launch, outcome, scenario, Server } from './harness.mjs';

const browser = await launch();
const server = await Server.start('--sim', 'wormhole,open=3s,close=10ms');
const kDevice = await server.simulated();
const fresh = () => calculator(browser, server, `#op=add&i.x=constant:20&i.x.shape=4&i.x.dtype=float32&i.y=constant:22&i.y.shape=4&i.y.dtype=float32`);

scenario('killed and restarted: the page says so, keeps the setup, and reconnects by itself', fresh, async (page) => {
  await calculate(page);
  await outcome(page);
  await server.kill('SIGKILL');
  await page.locator('.banner').getByText('The server does not respond. Your setup is kept.').waitFor();
  await page.locator('#input-0-value').fill('21');
  await page.getByRole('button', { name: 'Calculate' }).click();
  await page.locator('.result').getByText('The page reconnects automatically').waitFor();
  await server.restart();
  await page.locator('.banner').waitFor({ state: 'detached' });
  assert.equal(await page.locator('#input-0-value').inputValue(), '21');
  await page.getByRole('button', { name: 'Calculate' }).click();
  await page.waitForFunction(() => document.querySelector('.result .big.number')?.textContent === '43');
});

scenario('a computation that was under way is reported as lost, and can be repeated', fresh, async (page) => {
  await page.getByLabel(kDevice).check();
  await calculate(page);
  await page.locator('.result').getByText(/Opening on/).waitFor();
  await server.kill('SIGKILL');
  await server.restart();
  await page.locator('.result').getByText('The server restarted during this computation').waitFor();
  await calculate(page);
  await page.locator('.result .big.number').first().waitFor();
});

scenario('a server that ends in order says so first', fresh, async (page) => {
  const gone = server.kill('SIGTERM');
  await page.locator('.banner').getByText(/The server (is shutting down|does not respond)/).waitFor();
  await gone;
  await server.restart();
  // The page tries by itself as well, and may be first: then there is nothing left to click.
  const back = page.locator('.banner').waitFor({ state: 'detached' });
  await Promise.race([back, page.getByRole('button', { name: 'Retry now' }).click().catch(() => {})]);
  await back;
});
