// The picture in README.md: one product on the CPU and two simulated cards, side by side. By hand, when the page has changed:
//   node tests/web/readme_screenshot.mjs build/release/tenon docs/images
import { join } from 'node:path';
import { calculate, calculator, launch, scenario, screenshots, Server } from './harness.mjs';

const browser = await launch();
const server = await Server.start('--sim', 'wormhole,open=120ms,close=20ms', '--sim', 'gpu,open=40ms,close=10ms,factor=2');
const kProgram = '#op=matmul&i.a=random:normal:1:0:1&i.a.shape=64,64&i.a.dtype=bfloat16&i.b=random:normal:2:0:1&i.b.shape=64,64&i.b.dtype=bfloat16&device=cpu:0,sim:0,sim:1&runs=10';
const kLook = { viewport: { width: 1240, height: 800 }, colorScheme: 'light' };

scenario('three devices side by side', () => calculator(browser, server, kProgram, kLook), async (page) => {
  await page.getByText(/^Gives 64/).waitFor();
  await calculate(page);
  await page.waitForFunction(() => document.querySelector('.side-table') && !/running|queued|repeating|sending/.test(document.querySelector('.side-table').textContent));
  await page.getByRole('tab', { name: 'sim:0' }).click();
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: join(screenshots, 'calculator.png') });
});
