// The expression editor: completion, and the op that is carried over into it.
import assert from 'node:assert/strict';
import { calculate, calculator, launch, outcome, scenario, Server } from './harness.mjs';

const browser = await launch();
const server = await Server.start();
const fresh = (hash) => () => calculator(browser, server, hash);
const editor = (page) => page.getByRole('textbox', { name: 'Expression' });
const completions = (page) => page.getByRole('listbox', { name: 'Completions' }).getByRole('option');
const kExpression = `#expr=${encodeURIComponent('x')}&i.x=list:[[3,1,2]]&i.x.shape=&i.x.dtype=float32`;

scenario('ops are completed from the keyboard', fresh(kExpression), async (page) => {
  await editor(page).fill('');
  await editor(page).pressSequentially('softm');
  await completions(page).first().waitFor();
  assert.match(await completions(page).first().innerText(), /^softmax\(/);
  await page.getByRole('status').filter({ hasText: /completions?: softmax\(\. Tab inserts it/ }).waitFor({ state: 'attached' });
  await page.keyboard.press('Tab');
  assert.equal(await editor(page).inputValue(), 'softmax(');
  assert.equal(await completions(page).count(), 0);
  await editor(page).pressSequentially('x, ax');
  assert.match(await completions(page).first().innerText(), /^axis=/);
  await page.keyboard.press('ArrowDown');
  assert.equal(await completions(page).first().getAttribute('aria-selected'), 'true');
  assert.equal(await editor(page).getAttribute('aria-activedescendant'), 'completion-0');
  await page.keyboard.press('Enter');
  await editor(page).pressSequentially('-1)');
  assert.equal(await editor(page).inputValue(), 'softmax(x, axis=-1)');
  await page.keyboard.press('Control+Enter');
  assert.match(await (await outcome(page)).innerText(), /softmax\(x, axis=-1\)/);
});

scenario('Enter is a new line unless a completion is selected, and Escape closes the list', fresh(kExpression), async (page) => {
  await editor(page).fill('');
  await editor(page).pressSequentially('gel');
  await completions(page).first().waitFor();
  await page.keyboard.press('Enter');
  assert.equal(await editor(page).inputValue(), 'gel\n');
  await editor(page).pressSequentially('gel');
  await completions(page).first().waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await completions(page).count(), 0);
  await page.keyboard.press('Control+Space');
  await completions(page).first().click();
  assert.match(await editor(page).inputValue(), /^gel\ngelu/);
});

scenario('an operation goes along into the expression, with its inputs and parameters', fresh('#op=clamp&i.x=list:[-3,0,3]&i.x.shape=&i.x.dtype=float32&p.min=-1'), async (page) => {
  await page.getByRole('tab', { name: 'Expression' }).click();
  assert.equal(await editor(page).inputValue(), 'clamp(x, min=-1)');
  assert.equal(await page.locator('#input-0-list').inputValue(), '[-3,0,3]');
  await calculate(page);
  assert.equal(await (await outcome(page)).locator('.big.number').first().innerText(), '-1');
  await page.getByRole('tab', { name: 'Operation' }).click();
  await page.locator('#parameter-min').fill('-2');
  await page.getByRole('tab', { name: 'Expression' }).click();
  assert.equal(await editor(page).inputValue(), 'clamp(x, min=-2)', 'what was carried over follows the operation');
  await editor(page).fill('x + 1');
  await page.getByRole('tab', { name: 'Operation' }).click();
  await page.getByRole('tab', { name: 'Expression' }).click();
  assert.equal(await editor(page).inputValue(), 'x + 1', 'what the user wrote stays');
  await page.getByLabel('Example expressions').selectOption({ label: 'The operation: clamp(x, min=-2)' });
  assert.equal(await editor(page).inputValue(), 'clamp(x, min=-2)');
});
