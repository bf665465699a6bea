// A real server, a real browser, and what the tests share.
//
// Every test file is run by `node FILE PROGRAM SCREENSHOTS` (see CMakeLists.txt). Exit status 77 and a last line with the reason
// mean that it could not be run here.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
export const program = process.argv[2];
export const screenshots = process.argv[3];
// The packages of the page's own build.
export const require = createRequire(join(root, 'web/package.json'));

const kChromium = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

export function skip(reason) {
  console.log(reason);
  process.exit(77);
}
if (!existsSync(join(root, 'web/node_modules/playwright-core'))) skip("the page's npm packages are not installed");

// The browser, one for a file. Skips the file where there is none.
export async function launch() {
  if (!kChromium) skip('Chromium is not installed');
  const { chromium } = require('playwright-core');
  const args = ['--disable-gpu', '--disable-dev-shm-usage', '--force-color-profile=srgb'];
  if (process.getuid() === 0) args.push('--no-sandbox');
  const browser = await chromium.launch({ executablePath: kChromium, args });
  after(() => browser.close());
  return browser;
}

// A server with a run directory of its own. |port| 0: any free one.
export class Server {
  static async start(...args) {
    return Server.startIn(undefined, ...args);
  }

  // Another program of the same machine: it shares its devices with |neighbour|.
  static async startIn(neighbour, ...args) {
    const server = new Server();
    server.folder = mkdtempSync(join(tmpdir(), 'tenon-web-'));
    server.runDirectory = neighbour?.runDirectory ?? join(server.folder, 'run');
    server.args = args;
    after(() => server.end());
    await server.launch(0);
    return server;
  }

  async launch(port) {
    const env = { ...process.env, TENON_RUN_DIR: this.runDirectory, TENON_STATE_DIR: join(this.folder, 'state') };
    mkdirSync(env.TENON_RUN_DIR, { recursive: true, mode: 0o700 });
    this.process = spawn(program, ['serve', '--port', String(port), ...this.args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.gone = new Promise((resolve) => this.process.once('exit', resolve));
    const said = [];
    this.url = await new Promise((resolve, reject) => {
      for (const stream of [this.process.stdout, this.process.stderr]) {
        createInterface({ input: stream }).on('line', (line) => {
          said.push(line);
          const address = /http:\/\/[\w.:[\]]+:\d+/.exec(line);
          if (address) resolve(address[0]);
        });
      }
      this.process.once('exit', (status) => reject(new Error(`the server ended with status ${status}: ${said.join('\n')}`)));
    });
    this.port = Number(new URL(this.url).port);
  }

  async kill(signal = 'SIGKILL') {
    this.process.kill(signal);
    await this.gone;
  }

  // The same server again, at the same address.
  async restart() {
    await this.launch(this.port);
  }

  async end() {
    if (this.process.exitCode === null && this.process.signalCode === null) await this.kill('SIGKILL');
    rmSync(this.folder, { recursive: true, force: true });
  }

  // The id of the simulated device.
  async simulated() {
    const { devices } = await (await fetch(`${this.url}/api/devices`)).json();
    return devices.find((device) => device.simulated).id;
  }

  async until(device, state) {
    for (;;) {
      const { devices } = await (await fetch(`${this.url}/api/devices`)).json();
      if (devices.find(({ id }) => id === device).status.state === state) return;
    }
  }

  async post(path, body) {
    const response = await fetch(this.url + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
    return response.json();
  }
}

// With TENON_PAGE=FOLDER the page's files come from there (`vite build --outDir FOLDER`), so that a change can be tried without
// linking the program.
async function fromFolder(route) {
  const path = new URL(route.request().url()).pathname;
  await route.fulfill({ path: join(process.env.TENON_PAGE, path.startsWith('/assets/') ? path : 'index.html') });
}

// A page of a user of their own. What the browser complains about fails the test that did not expect it.
export async function visit(browser, server, path = '/', options = {}) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 1000 }, ...options });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  page.complaints = [];
  page.requests = [];
  page.on('pageerror', (error) => page.complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/status of (4|5)\d\d|ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY/.test(message.text())) page.complaints.push(message.text());
  });
  page.on('request', (request) => page.requests.push(request.url()));
  if (process.env.TENON_PAGE) await context.route(/^http:\/\/[^/]+\/(assets\/[^?#]*|devices|models)?(#.*)?$/, fromFolder);
  await page.goto(server.url + path);
  return page;
}

// The calculator, with its catalogue and the devices there.
export async function calculator(browser, server, hash = '', options = {}) {
  const page = await visit(browser, server, `/${hash}`, options);
  await page.getByRole('button', { name: 'Calculate' }).waitFor();
  await page.locator('.devices-choice .chip:not(.awaited)').nth(1).waitFor();
  return page;
}

export async function close(page) {
  const { complaints } = page;
  await page.context().close();
  if (complaints.length > 0) throw new Error(`the browser complained: ${complaints.join('\n')}`);
}

// A test with a page of its own.
export function scenario(name, open, body) {
  test(name, async () => {
    const page = await open();
    try {
      await body(page);
    } catch (error) {
      if (screenshots) await page.screenshot({ path: join(screenshots, `failed-${name.replace(/\W+/g, '-').slice(0, 60)}.png`) }).catch(() => undefined);
      await page.context().close();
      throw error;
    }
    await close(page);
  });
}

export const calculate = (page) => page.getByRole('button', { name: 'Calculate' }).click();
// The result on a device, finished.
export async function outcome(page, device = '') {
  const card = page.locator('article.result').filter({ hasText: device }).first();
  await card.locator('.values, .notice').first().waitFor();
  return card;
}

// A .npy file of float32.
export function npy(shape, floats) {
  let header = `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape.join(', ')},), }`;
  header = header.padEnd(128 - 10 - 1) + '\n';
  const head = Buffer.from([0x93, ...Buffer.from('NUMPY'), 1, 0, header.length & 255, header.length >> 8]);
  return Buffer.concat([head, Buffer.from(header, 'latin1'), Buffer.from(new Float32Array(floats).buffer)]);
}

// A safetensors file of float32.
export function safetensors(tensors) {
  let at = 0;
  const header = Object.fromEntries(
    Object.entries(tensors).map(([name, floats]) => [name, { dtype: 'F32', shape: [floats.length], data_offsets: [at, (at += floats.length * 4)] }]),
  );
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...Object.values(tensors).map((floats) => Buffer.from(new Float32Array(floats).buffer))]);
}
