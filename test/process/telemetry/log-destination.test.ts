import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  constants,
  fstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const WRITER = join(import.meta.dirname, '../../fixtures/telemetry/log-writer.ts');
let folder: string;
let open: number[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agentd-log-'));
  open = [];
});
afterEach(() => {
  for (const fd of open) closeSync(fd);
  rmSync(folder, { recursive: true, force: true });
});

function keep(fd: number): number {
  open.push(fd);
  return fd;
}

/** A pipe with nobody reading: the descriptor is opened for both ends. */
function pipe(): number {
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  return keep(openSync(path, constants.O_RDWR | constants.O_NONBLOCK));
}

function start(stderr: number | 'pipe', lines: number, flushMs: number, env = {}): ChildProcess {
  return spawn(process.execPath, ['--import', 'tsx', WRITER], {
    stdio: ['ignore', 'pipe', stderr],
    env: { ...process.env, LINES: String(lines), FLUSH_MS: String(flushMs), ...env },
  });
}

/** What the writer reported, once it has ended by itself with 0. */
async function report(child: ChildProcess): Promise<{ dropped: number; told: number }> {
  if (child.stdout === null) throw new Error('no stdout');
  const exit = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const output = await text(child.stdout);
  expect(await exit).toBe(0);
  return JSON.parse(output);
}

describe('a log whose reader misbehaves', () => {
  it('drops and counts lines when the stderr pipe is full, and the process still ends', async () => {
    const stderr = pipe();
    const seen = await report(start(stderr, 20_000, 50));
    expect(seen.dropped).toBeGreaterThan(1000);
    expect(seen.told).toBe(seen.dropped);
    // What did get through is whole lines but for the last one, cut where the pipe was full.
    const buffer = Buffer.alloc(1 << 20);
    const lines = buffer.toString('utf8', 0, readSync(stderr, buffer)).split('\n').slice(0, -1);
    expect(lines.length).toBeGreaterThan(10);
    expect(lines.map((line) => JSON.parse(line).n)).toEqual(lines.map((_line, index) => index));
  });

  it('leaves the flags of a shared stderr alone', async () => {
    const path = join(folder, 'pipe');
    execFileSync('mkfifo', [path]);
    const stderr = keep(openSync(path, constants.O_RDWR));
    await report(start(stderr, 10, 1000));
    const flags = /flags:\s+(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${stderr}`, 'utf8'))?.[1];
    expect(Number.parseInt(String(flags), 8) & constants.O_NONBLOCK).toBe(0);
  });

  it('goes on when the reader has closed stderr', async () => {
    const child = start('pipe', 2000, 50);
    child.stderr?.destroy();
    const seen = await report(child);
    expect(seen.dropped).toBeGreaterThan(0);
    expect(seen.told).toBe(seen.dropped);
  });

  it('goes on when the reader of a real pipe has gone', async () => {
    // sh makes a pipe where Node would make a socket pair.
    const script = 'exec 3>&1; "$0" --import tsx "$1" 2>&1 >&3 | true';
    const child = spawn('sh', ['-c', script, process.execPath, WRITER], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, LINES: '2000', FLUSH_MS: '50' },
    });
    const seen = await report(child);
    expect(seen.dropped).toBeGreaterThan(0);
    expect(seen.told).toBe(seen.dropped);
  });

  it('goes on when the disk of a redirected stderr is full', async () => {
    const seen = await report(start(keep(openSync('/dev/full', constants.O_WRONLY)), 20_000, 50));
    expect(seen.dropped).toBeGreaterThan(0);
  });

  it('loses nothing on a file', async () => {
    const path = join(folder, 'log');
    const seen = await report(start(keep(openSync(path, 'w')), 5000, 30_000));
    expect(seen.dropped).toBe(0);
    const numbers = readFileSync(path, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).n);
    expect(numbers).toEqual(Array.from({ length: 5000 }, (_, index) => index));
  });

  it('marks the priority of each line for the journal, and for nobody else', async () => {
    const path = join(folder, 'log');
    const stderr = keep(openSync(path, 'w'));
    const { dev, ino } = fstatSync(stderr, { bigint: true });
    await report(start(stderr, 1, 30_000, { JOURNAL_STREAM: `${dev}:${ino}` }));
    await report(start(stderr, 1, 30_000, { JOURNAL_STREAM: `${dev}:${ino + 1n}` }));
    const [first, second] = readFileSync(path, 'utf8').split('\n');
    expect(first).toMatch(/^<6>\{"ts":/);
    expect(second).toMatch(/^\{"ts":/);
  });

  it('loses nothing on a pipe or socket whose reader keeps up', async () => {
    const child = start('pipe', 5000, 30_000);
    if (child.stderr === null) throw new Error('no stderr');
    const [seen, output] = await Promise.all([report(child), text(child.stderr)]);
    expect(output.trimEnd().split('\n')).toHaveLength(5000 - seen.dropped);
    expect(seen.dropped).toBe(0);
  });
});
