// The login: wrong passwords, the lockout, the session.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { launch, program, scenario, Server, skip, visit } from './harness.mjs';

const kPassword = 'correct horse';
const folder = mkdtempSync(join(tmpdir(), 'tenon-web-session-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const passwords = join(folder, 'passwords');
try {
  writeFileSync(passwords, execFileSync(program, ['serve', 'hash-password'], { input: `${kPassword}\n`, stdio: 'pipe' }), { mode: 0o600 });
} catch (error) {
  if (/libsodium/.test(String(error.stderr))) skip('this build knows no passwords: libsodium is missing');
  throw error;
}

const browser = await launch();
const server = await Server.start('--password-file', passwords);
const strict = await Server.start('--password-file', passwords);

const login = async (page, password) => {
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
};

scenario('the page asks for the password, and opens with it', () => visit(browser, server), async (page) => {
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Log in' }).isDisabled(), true);
  await page.getByLabel('Password', { exact: true }).fill('x');
  await page.getByRole('button', { name: 'Show the password' }).click();
  assert.equal(await page.locator('#password').getAttribute('type'), 'text');
  await login(page, 'wrong');
  await page.getByText('The password is wrong. 4 attempts left.').waitFor();
  await login(page, kPassword);
  await page.getByRole('button', { name: 'Calculate' }).waitFor();
  assert.deepEqual((await page.context().cookies()).map(({ httpOnly, sameSite }) => [httpOnly, sameSite]).at(0), [true, 'Strict']);
  await page.reload();
  await page.getByRole('button', { name: 'Calculate' }).click();
  await page.locator('.result .big.number').first().waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
});

scenario('a link survives the login', () => visit(browser, server, '/#op=exp&i.x=constant:0&i.x.shape=2&i.x.dtype=float32'), async (page) => {
  await login(page, kPassword);
  await page.getByRole('button', { name: 'Calculate' }).waitFor();
  assert.equal(await page.getByRole('combobox', { name: 'Operation' }).inputValue(), 'exp');
});

scenario('a session that ends under the page brings the login back, and keeps what is set up', () => visit(browser, server, '/#op=cos'), async (page) => {
  await login(page, kPassword);
  await page.getByRole('button', { name: 'Calculate' }).waitFor();
  await page.locator('#input-0-value').fill('42');
  await page.context().clearCookies();
  // Whichever asks the server first learns of it: the click, or what the page asks for by itself, which takes the button away.
  await page.getByRole('button', { name: 'Calculate' }).click({ timeout: 5000 }).catch(() => {});
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  await login(page, kPassword);
  await page.getByRole('button', { name: 'Calculate' }).waitFor();
  assert.equal(await page.locator('#input-0-value').inputValue(), '42');
});

scenario('before an idle session ends, the page asks', () => visit(browser, server), async (page) => {
  await page.clock.install();
  await login(page, kPassword);
  await page.getByRole('button', { name: 'Calculate' }).waitFor();
  // The server's answer decides; it is made to say what it would say after 26 minutes.
  let ends = 240;
  await page.route('**/api/session', async (route) => {
    if (route.request().method() === 'POST') ends = 1800;
    await route.fulfill({ json: { required: true, authenticated: true, account: 'admin', expires_in_seconds: ends, idle_timeout_seconds: 1800 } });
  });
  await page.clock.runFor(26 * 60 * 1000);
  await page.getByRole('dialog').getByText(/The session ends in/).waitFor();
  await page.getByRole('button', { name: 'Stay logged in' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
});

scenario('five failures lock the login, which says for how long', () => visit(browser, strict), async (page) => {
  for (let attempt = 4; attempt > 0; attempt--) {
    await login(page, 'wrong');
    await page.getByText(new RegExp(`${attempt} attempts? left`)).waitFor();
  }
  await login(page, 'wrong');
  await page.getByText(/Too many failed attempts\. Try again in 1[45] min/).waitFor();
  assert.equal(await page.getByLabel('Password', { exact: true }).isDisabled(), true);
  await page.reload();
  await page.getByText(/Too many failed attempts\. Try again in/).waitFor();
});
