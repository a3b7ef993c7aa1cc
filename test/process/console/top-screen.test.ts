import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, it } from 'vitest';

/** The bundled screen on its own: what it was built from is not needed where it runs. */
let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentd-screen-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

it('the screen of top runs from dist alone, without node_modules', async () => {
  for (const file of ['top-screen.js', 'top-screen.mjs', 'package.json']) {
    await cp(new URL(`../../../dist/${file}`, import.meta.url), join(folder, file));
  }
  await writeFile(
    join(folder, 'probe.js'),
    `const { PassThrough } = require('node:stream');
const stdout = Object.assign(new PassThrough(), { columns: 80, rows: 24, isTTY: true });
let text = '';
stdout.on('data', (chunk) => { text += chunk; });
require('./top-screen.js')
  .openScreen({ stdout, stdin: new PassThrough(), paint: (_style, shown) => shown })
  .then(async (screen) => {
    screen.update([{ kind: 'down', url: 'http://there', reason: 'not reached' }]);
    while (!text.includes('not reached')) await new Promise((resolve) => setTimeout(resolve, 10));
    await screen.close();
    process.stdout.write('shown');
  });
`,
  );
  const { stdout } = await promisify(execFile)(process.execPath, [join(folder, 'probe.js')], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '' },
  });
  expect(stdout).toBe('shown');
});
