import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const AGENTD = fileURLToPath(new URL('../../../dist/agentd.js', import.meta.url));
/** Node itself catches SIGTERM and SIGINT, to give a terminal back; SIGHUP only we do, after the others. */
const SIGHUP_BIT = 1n << 0n;
const canSee = existsSync('/proc/self/status');

let folder = '';
let running: ChildProcess[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agentd-early-'));
});
afterEach(async () => {
  for (const child of running) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  running = [];
  rmSync(folder, { recursive: true, force: true });
});

interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown[]>;
  readonly output: () => string;
}

function start(program: string, args: readonly string[]): Started {
  // The certificates Node reads first with this variable only prolong what cannot be closed.
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
  const child = spawn(process.execPath, [program, ...args], { cwd: folder, env, stdio: 'pipe' });
  running.push(child);
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (text += String(chunk)));
  return { child, ended: once(child, 'close'), output: () => text };
}

/** Resolves as soon as the process no longer takes the default action for signals. */
async function catchesSignals({ child }: Started): Promise<void> {
  for (;;) {
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
    const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(status)?.[1];
    if (caught === undefined || child.exitCode !== null) throw new Error(`it has ended: ${status}`);
    if ((BigInt(`0x${caught}`) & SIGHUP_BIT) !== 0n) return;
    await turn();
  }
}

const RUN = ['run', 'x', '--intelligence', 'script:final', '--log-format', 'json'];
const COMMANDS: readonly (readonly [string, readonly string[]])[] = [
  ['a one-shot run', RUN],
  ['a schedule', [...RUN, '--mode', 'schedule', '--interval', '1h']],
  [
    'a supervisor whose server does not answer',
    [
      'supervise',
      '--instruction',
      'x',
      '--intelligence',
      'script:final',
      '--mcp',
      'a=http://127.0.0.1:1/mcp',
      '--subscribe',
      'a:x://y',
    ],
  ],
  ['a coordination server', ['coordinate', '--listen', 'http://127.0.0.1:0', '--db', 'ledger.sqlite']],
  ['an inbox', ['inbox', '.', '--listen', 'http://127.0.0.1:0']],
];

describe.skipIf(!canSee)('SIGTERM while the command starts', () => {
  it.each(COMMANDS)(
    'ends %s with exit 0 and nothing started, from the first moment it is caught',
    async (_name, args) => {
      const started = start(AGENTD, args);
      await catchesSignals(started);
      started.child.kill('SIGTERM');
      expect(await started.ended).toEqual([0, null]);
      expect(started.output()).toContain('told to end before anything was started');
      expect(started.output()).not.toMatch(/proc\.ready|subagent\.spawn|mcp\.connect/);
      expect(existsSync(join(folder, 'ledger.sqlite'))).toBe(false);
    },
  );

  it('leaves the report of a run that was cancelled before it began', async () => {
    const started = start(AGENTD, [...RUN, '--report-file', 'report.json']);
    await catchesSignals(started);
    started.child.kill('SIGTERM');
    expect(await started.ended).toEqual([0, null]);
    const report: unknown = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8'));
    expect(report).toMatchObject({ status: 'cancelled', exit_code: 0 });
  });

  it.each(['SIGINT', 'SIGTERM'] as const)(
    'takes %s after a SIGHUP, which it has nothing to reload for yet',
    async (signal) => {
      const started = start(AGENTD, [...RUN, '--mode', 'schedule', '--interval', '1h']);
      await catchesSignals(started);
      started.child.kill('SIGHUP');
      started.child.kill(signal);
      expect(await started.ended).toEqual([0, null]);
    },
  );

  it('right after the process exists either ends it by its default, or is caught: no third outcome', async () => {
    const started = start(AGENTD, [...RUN, '--mode', 'schedule', '--interval', '1h']);
    await once(started.child, 'spawn');
    started.child.kill('SIGTERM');
    expect([
      [null, 'SIGTERM'],
      [0, null],
    ]).toContainEqual(await started.ended);
  });
});

describe('the launcher of the command', () => {
  it('catches the signals before it loads the program', async () => {
    cpSync(dirname(AGENTD), folder, { recursive: true });
    const counts = "['SIGTERM', 'SIGINT', 'SIGHUP'].map((name) => process.listenerCount(name))";
    writeFileSync(join(folder, 'agentd.cjs'), `console.log(JSON.stringify(${counts}))\n`);
    const started = start(join(folder, 'agentd.js'), []);
    expect(await started.ended).toEqual([0, null]);
    expect(started.output()).toBe('[1,1,1]\n');
    // Libraries have launchers too, which must leave the signals alone.
    expect(readFileSync(join(folder, 'undici.js'), 'utf8')).not.toContain('SIGTERM');
  });
});
