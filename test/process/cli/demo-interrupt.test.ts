import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

it('the demo drains and ends with 0 on Ctrl-C, also as npm starts it', async () => {
  const { scripts } = JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8')) as {
    scripts: { start: string };
  };
  // As npm does it, in a process group that gets its signals together, as the one of a terminal does.
  const shell = spawn('sh', ['-c', `${scripts.start} --keep`], {
    cwd: ROOT,
    detached: true,
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(shell, 'exit');
  let out = '';
  for (const stream of [shell.stdout, shell.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      out += chunk.toString();
    });
  }
  const done = (shard: number): boolean => out.includes(`  shard ${shard}  `);
  const group = -(shell.pid ?? Number.NaN);
  try {
    await eventually('every shard to have done an item', () => done(0) && done(1) && done(2), 180_000);
    process.kill(group, 'SIGINT');
    // npm passes the signal on as well.
    process.kill(group, 'SIGINT');
    expect([await ended, out]).toEqual([[0, null], expect.stringContaining('duplicates 0')]);
  } finally {
    if (shell.exitCode === null && shell.signalCode === null) process.kill(group, 'SIGKILL');
  }
}, 240_000);

it('the demo refuses a flag it does not know, with 2, before anything is started', async () => {
  const demo = spawn(process.execPath, ['--import', 'tsx', 'scripts/demo/main.ts', '--kep'], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let told = '';
  demo.stderr.on('data', (chunk: Buffer) => {
    told += chunk.toString();
  });
  expect((await once(demo, 'close'))[0]).toBe(2);
  expect(told).toContain("Unknown option '--kep'");
  expect(told).toContain('npm start -- --keep');
}, 60_000);
