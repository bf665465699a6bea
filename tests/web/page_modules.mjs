// Modules of the page that need no browser, for tests of their own.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { pathToFileURL } from 'node:url';
import { require, root } from './harness.mjs';

const folder = mkdtempSync(join(tmpdir(), 'tenon-web-modules-'));
after(() => rmSync(folder, { recursive: true, force: true }));

export function load(name) {
  const outfile = join(folder, `${name.replace('/', '-')}.mjs`);
  require('esbuild').buildSync({ entryPoints: [join(root, 'web/src', `${name}.ts`)], bundle: true, format: 'esm', outfile, logLevel: 'error' });
  return import(pathToFileURL(outfile));
}
