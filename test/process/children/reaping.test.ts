import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { killLeftovers } from '../../../supervisor/children/leftovers.ts';
import { eventually } from '../../helpers/eventually.ts';
import { recordingLog } from '../../helpers/null-log.ts';
import { isRunning } from './harness.ts';

const SCRIPT = fileURLToPath(new URL('./supervising-process.ts', import.meta.url));
const NODE = [process.execPath, '--import', 'tsx', SCRIPT] as const;
const UNSHARE = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child'] as const;

/** Whether this user may make a pid namespace, as the tests as PID 1 need. */
const mayUnshare = spawnSync(UNSHARE[0], [...UNSHARE.slice(1), 'true']).status === 0;

/** Root is bound by no limit on processes, so a process that is to feel one runs as somebody else. */
const DROP = process.getuid?.() === 0 ? ['setpriv', '--reuid', '65534', '--clear-groups', '--'] : [];
/** Whether that somebody may read this checkout and limit itself. */
const mayDrop = ['test -r "$0"', 'command -v prlimit'].every((check) => {
  const [file = 'sh', ...args] = [...DROP, 'sh', '-c', check, SCRIPT];
  return spawnSync(file, args).status === 0;
});

describe('reaping', () => {
  let started: ChildProcess[] = [];
  const start = (words: readonly string[]): ChildProcess => {
    const [file = '', ...args] = words;
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    started.push(child);
    return child;
  };
  const report = async (child: ChildProcess): Promise<Record<string, unknown>> => {
    if (child.stdout === null) throw new Error('no stdout');
    const [line] = await once(createInterface({ input: child.stdout }), 'line');
    return JSON.parse(String(line)) as Record<string, unknown>;
  };
  afterEach(() => {
    for (const child of started) child.kill('SIGKILL');
    started = [];
  });

  it('H05: after kill -9 of a supervisor nothing of it is left, at the latest after the next start', async () => {
    const supervisor = start([...NODE, 'keeps-grandchildren', 'hold']);
    const { child, ordinary, escaped } = await report(supervisor);
    const pids = [child, ordinary, escaped].map(Number);
    for (const pid of pids) expect(isRunning(pid)).toBe(true);
    supervisor.kill('SIGKILL');
    await once(supervisor, 'exit');
    // The child itself dies with its supervisor.
    await eventually('the end of the child', () => !isRunning(Number(child)));
    const escapees = pids.filter(isRunning);
    const { log, lines } = recordingLog();
    const killed = killLeftovers(log);
    expect(killed).toEqual(expect.arrayContaining(escapees));
    expect(lines.map((line) => line.fields.orphan_pid)).toEqual(expect.arrayContaining(escapees));
    for (const pid of pids) await eventually(`the end of ${pid}`, () => !isRunning(pid));
  });

  it('the processes of a supervisor that lives are no leftovers', async () => {
    const supervisor = start([...NODE, 'keeps-grandchildren', 'hold']);
    const pids = Object.values(await report(supervisor)).map(Number);
    const { log } = recordingLog();
    killLeftovers(log);
    for (const pid of pids) expect(isRunning(pid)).toBe(true);
    supervisor.kill('SIGKILL');
    await once(supervisor, 'exit');
    killLeftovers(log);
    for (const pid of pids) await eventually(`the end of ${pid}`, () => !isRunning(pid));
  });

  it('H29: runs that double-fork leave no zombie, no orphan and no descriptor behind', async () => {
    const child = start([...NODE, 'forks-twice', '60', '600']);
    const seen = await report(child);
    expect(seen).toMatchObject({ children: 0, zombies: 0, active: 0 });
    expect(Number(seen.orphans)).toBeGreaterThanOrEqual(2 * 60);
    expectFlat(seen);
  });

  it.skipIf(!mayUnshare)(
    'H29: 500 runs that each double-fork, as PID 1 of a namespace',
    async () => {
      const child = start([...UNSHARE, ...NODE, 'forks-twice', '500', '600']);
      const seen = await report(child);
      expect(seen).toMatchObject({ pid: 1, children: 0, zombies: 0, active: 0 });
      expectFlat(seen);
    },
    300_000,
  );

  it('H29: descriptors are flat after 500 failed spawns', async () => {
    const child = start([...NODE, '/no/such/program', '500']);
    const seen = await report(child);
    expect(seen).toMatchObject({ children: 0, zombies: 0, active: 0 });
    expectFlat(seen);
  });

  it('a supervisor that runs out of file descriptors fails the runs it cannot start, and goes on', async () => {
    const child = start(['sh', '-c', `ulimit -n 256; exec "$@"`, 'sh', ...NODE, 'obliging', 'exhaust']);
    expect(await report(child)).toEqual({
      causes: ['completed', 'spawn_failed', 'spawn_failed', 'completed'],
    });
  });

  it.skipIf(!mayDrop)('a supervisor that may start no process fails its runs, and goes on', async () => {
    const child = start([...DROP, ...NODE, 'obliging', 'no-processes']);
    expect(await report(child)).toEqual({
      first: 'completed',
      cause: 'spawn_failed',
      message: expect.stringContaining('EAGAIN'),
    });
  });

  function expectFlat(seen: Record<string, unknown>): void {
    const { before, after } = seen.descriptors as { before: number; after: number };
    expect(after).toBeLessThanOrEqual(before + 5);
  }
});
