import { mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openCgroups } from '../../../supervisor/children/cgroup.ts';
import { type SupervisedProcess, spawnSupervised } from '../../../supervisor/children/supervised-process.ts';
import { eventually } from '../../helpers/eventually.ts';
import { nullLog } from '../../helpers/null-log.ts';
import { isRunning, noSurvivors } from './harness.ts';

const TIMINGS = { cancelGraceMs: 200, termGraceMs: 200, killWaitMs: 20_000 };
const env = { PATH: process.env.PATH ?? '' };

describe('a supervised process', () => {
  afterEach(noSurvivors);

  const read = (process_: SupervisedProcess): (() => string) => {
    let text = '';
    process_.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    process_.stderr.resume();
    return () => text;
  };

  it('leads its own group and session, and inherits nothing but what it is given', async () => {
    const child = spawnSupervised(['sh', '-c', 'echo $$ $(ps -o pgid= -o sid= -p $$); env'], {
      env: { ...env, GIVEN: 'yes' },
    });
    const text = read(child);
    expect(await child.exited).toMatchObject({ code: 0, cause: null, rung: 'none', groupEmpty: true });
    await child.drained;
    const [ids = '', ...variables] = text().trim().split('\n');
    expect(new Set(ids.trim().split(/\s+/))).toEqual(new Set([String(child.pid)]));
    const names = variables
      .map((line) => line.split('=')[0])
      .filter((name) => !/^(PWD|_|SHLVL|OLDPWD)$/.test(String(name)));
    expect(names.sort()).toEqual(['AGENT_SUPERVISION_ID', 'GIVEN', 'PATH']);
  });

  it('is first asked to leave by the end of its stdin', async () => {
    const child = spawnSupervised(['cat'], { env, timings: { ...TIMINGS, cancelGraceMs: 60_000 } });
    read(child);
    child.stop('no longer needed');
    expect(await child.exited).toMatchObject({ code: 0, cause: 'no longer needed', rung: 'cancel' });
  });

  it('keeps the first cause through every rung', async () => {
    const child = spawnSupervised(['sh', '-c', 'trap "" TERM; echo up; while :; do sleep 0.05; done'], {
      env,
      timings: TIMINGS,
    });
    const text = read(child);
    await eventually('the trap', () => text().includes('up'));
    child.stop('first');
    child.terminate('second');
    child.kill('third');
    expect(await child.exited).toMatchObject({
      cause: 'first',
      rung: 'kill',
      signal: 'SIGKILL',
      groupEmpty: true,
    });
  });

  it('ends at once when it cannot be started', async () => {
    const child = spawnSupervised(['no-such-program-anywhere'], { env });
    const end = await child.exited;
    expect(end.spawnError).toMatchObject({ code: 'SPAWN_FAILED' });
    expect(child.pid).toBeNull();
    await child.drained;
    child.stop('in vain');
    child.kill('in vain');
  });

  it('a stopped process acts on SIGTERM, since it is continued', async () => {
    const child = spawnSupervised(['sh', '-c', 'trap "exit 7" TERM; echo up; while :; do sleep 0.05; done'], {
      env,
      timings: { ...TIMINGS, termGraceMs: 30_000 },
    });
    const text = read(child);
    await eventually('the trap', () => text().includes('up'));
    process.kill(Number(child.pid), 'SIGSTOP');
    child.terminate('stopped');
    expect(await child.exited).toMatchObject({ code: 7, rung: 'term' });
  });

  it('escapees of a process that has ended are found by its marker', async () => {
    const child = spawnSupervised(['sh', '-c', 'setsid sleep 600 >/dev/null 2>&1 & echo $!; sleep 0.2'], {
      env,
    });
    const text = read(child);
    await child.exited;
    await eventually('the end of the escapee', () => text() !== '' && !isRunning(Number(text().trim())));
  });
});

/** A cgroup v2 folder this user may make folders in, or null. */
function delegated(): string | null {
  const mount = /^\d+ \d+ \S+ \S+ (\S+) .* - cgroup2 /m.exec(
    readFileSync('/proc/self/mountinfo', 'utf8'),
  )?.[1];
  if (mount === undefined) return null;
  const path = join(mount, `agentd-test-${process.pid}`);
  try {
    mkdirSync(path);
    return path;
  } catch {
    return null;
  }
}

describe('cgroups', () => {
  const root = delegated();

  it.skipIf(root === null)(
    'a leaf holds a child and all it starts, and cgroup.kill reaches what left the group',
    async () => {
      const cgroups = openCgroups({ root: String(root), memoryMaxBytes: null, pidsMax: null }, nullLog);
      const leaf = cgroups?.leaf() ?? null;
      if (leaf === null) throw new Error('no leaf');
      const child = spawnSupervised(
        ['sh', '-c', 'read go; setsid sleep 600 >/dev/null 2>&1 & echo $!; exec sleep 600'],
        {
          env,
          timings: TIMINGS,
          cgroupKill: () => leaf.kill(),
        },
      );
      leaf.add(Number(child.pid));
      let text = '';
      child.stdout.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      child.stdin.write('go\n');
      const escapee = Number(await eventually('the escapee', () => /\d+\n/.exec(text)?.[0].trim()));
      expect(readFileSync(join(leaf.path, 'cgroup.procs'), 'utf8').split('\n')).toContain(String(escapee));
      leaf.kill();
      expect(await child.exited).toMatchObject({ signal: 'SIGKILL', cause: null });
      await eventually('the end of the escapee', () => !isRunning(escapee));
      expect(leaf.ranOutOfMemory()).toBe(false);
      await eventually('the removal of the leaf', () => {
        leaf.remove();
        rmdirSync(String(root));
        return true;
      });
    },
  );

  it('without a delegated folder there is none, and nothing fails', () => {
    expect(openCgroups({ root: '/proc/no/such', memoryMaxBytes: 1, pidsMax: 1 }, nullLog)).toBeNull();
  });
});
