// The picture in README.md, of a server with two simulated cards beside the CPU. By hand, when the page has changed:
//   node tests/web/readme_screenshot.mjs build/release/tenon docs/images
import { join } from 'node:path';
import { calculate, calculator, launch, outcome, scenario, screenshots, Server } from './harness.mjs';

const browser = await launch();
const server = await Server.start('--sim', 'wormhole', '--sim', 'gpu');
const kProgram = '#op=gelu&i.x=random:normal:1:0:2&i.x.shape=32,32&i.x.dtype=bfloat16';
const kLook = { viewport: { width: 1280, height: 960 }, colorScheme: 'light' };

scenario('the calculator with a result', () => calculator(browser, server, kProgram, kLook), async (page) => {
  await page.getByText(/^Gives 32/).waitFor();
  await page.locator('.devices-choice .chip').filter({ hasText: 'sim:0' }).click();
  await calculate(page);
  const card = await outcome(page);
  await card.getByRole('tab', { name: 'Heat map' }).click();
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: join(screenshots, 'calculator.png') });
});
