import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AGENTD } from '../../../scripts/fleet/agentd-process.ts';
import { eventually } from '../../helpers/eventually.ts';

const UNSHARE = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child'] as const;
/** In containers without CAP_SYS_ADMIN a pid namespace cannot be made. */
const mayUnshare = spawnSync(UNSHARE[0], [...UNSHARE.slice(1), 'true']).status === 0;

interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
}

let folder = '';
let started: ChildProcess[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agentd-pid1-'));
});
afterEach(() => {
  for (const child of started) child.kill('SIGKILL');
  started = [];
  rmSync(folder, { recursive: true, force: true });
});

/** agentd as the first process of a pid namespace, as in a container without an init. */
class FirstProcess {
  readonly events: string[] = [];
  readonly ended: Promise<Ended>;
  /** Everything it said. */
  readonly said: string[] = [];
  private readonly unshare: ChildProcess;
  private readonly listeners = new Set<() => void>();

  constructor(args: readonly string[]) {
    const [file, ...flags] = UNSHARE;
    this.unshare = spawn(file, [...flags, process.execPath, AGENTD, ...args, '--log-format', 'json'], {
      env: { PATH: process.env.PATH ?? '' },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    started.push(this.unshare);
    this.ended = once(this.unshare, 'close').then(([code, signal]) => ({ code, signal }));
    createInterface({ input: this.unshare.stderr ?? process.stdin }).on('line', (line) => {
      this.said.push(line);
      if (line.startsWith('{')) this.events.push(String((JSON.parse(line) as { event?: unknown }).event));
      for (const listener of this.listeners) listener();
    });
  }

  /** Resolves when `event` has been logged `times` times. */
  async saw(event: string, times = 1): Promise<void> {
    const enough = (): boolean => this.events.filter((one) => one === event).length >= times;
    await new Promise<void>((resolve, reject) => {
      const look = (): void => {
        if (!enough()) return;
        this.listeners.delete(look);
        resolve();
      };
      this.listeners.add(look);
      look();
      void this.ended.then((ended) => reject(new Error(`ended ${JSON.stringify(ended)} before ${event}`)));
    });
  }

  /** Its number outside of the namespace. */
  get pid(): number {
    const text = readFileSync(`/proc/${this.unshare.pid}/task/${this.unshare.pid}/children`, 'utf8');
    return Number(text.trim());
  }

  /** Every other process of its namespace: state letter and parent, by pid. */
  others(): Map<number, { readonly state: string; readonly parent: number }> {
    const space = readlinkSync(`/proc/${this.pid}/ns/pid`);
    const found = new Map<number, { state: string; parent: number }>();
    for (const pid of readdirSync('/proc').map(Number)) {
      if (!Number.isInteger(pid) || pid === this.pid) continue;
      try {
        if (readlinkSync(`/proc/${pid}/ns/pid`) !== space) continue;
        const [state = '', parent = ''] =
          readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
        found.set(pid, { state, parent: Number(parent) });
      } catch {
        // it has gone
      }
    }
    return found;
  }

  signal(name: NodeJS.Signals): void {
    process.kill(this.pid, name);
  }
}

function run(playbook: string, ...flags: string[]): FirstProcess {
  const path = join(folder, 'playbook.yaml');
  writeFileSync(path, playbook);
  return new FirstProcess([
    'run',
    'x',
    '--intelligence',
    `script:${path}`,
    '--drain-timeout',
    '4s',
    ...flags,
  ]);
}

describe.skipIf(!mayUnshare)('agentd as PID 1 (skipped where no pid namespace may be made)', () => {
  it('SIGTERM drains a running child, and the exit code is 0', async () => {
    const first = run('turns:\n  - hang: true\n');
    await first.saw('loop.start');
    first.signal('SIGTERM');
    expect(await first.ended).toEqual({ code: 0, signal: null });
    expect(first.events).toContain('drain.done');
  });

  it('SIGINT drains it as well', async () => {
    const first = run('turns:\n  - hang: true\n');
    await first.saw('loop.start');
    first.signal('SIGINT');
    expect(await first.ended).toEqual({ code: 0, signal: null });
  });

  it('SIGTERM before anything was set up ends it cleanly, not by the kernel ignoring it', async () => {
    const first = run('turns:\n  - hang: true\n');
    await first.saw('proc.start');
    first.signal('SIGTERM');
    expect(await first.ended).toEqual({ code: 0, signal: null });
  });

  it('a second SIGTERM forces the end, with 143', async () => {
    // A blocked child hears no cancel: the drain would take its time.
    const first = run('turns:\n  - spin: true\n');
    await first.saw('loop.start');
    first.signal('SIGTERM');
    await first.saw('drain.start');
    // Closer together than this, two signals are one request.
    await new Promise((resolve) => setTimeout(resolve, 300));
    first.signal('SIGTERM');
    expect(await first.ended).toEqual({ code: 143, signal: null });
  });

  it('reaps what its children leave behind, and what others leave to it', async () => {
    const first = run(
      'turns:\n  - fork: { kinds: [ordinary, setsid], seconds: 600 }\n  - final: done\n',
      '--mode',
      'loop',
      '--interval',
      '100ms',
    );
    await first.saw('subagent.exit', 4);
    // A process that came into the container by another way, as `exec` does, and left an orphan.
    const exec = ['-t', String(first.pid), '-p', '-m', 'setsid', 'sh', '-c', 'sleep 0.05 & echo $!'];
    const entered = spawnSync('nsenter', exec, { encoding: 'utf8' });
    expect(entered.status).toBe(0);
    await first.saw('subagent.exit', 6);
    // Runs go on, so there may always be some that have just died: those of now must go.
    const dead = [...first.others()].filter(([, { state }]) => state === 'Z').map(([pid]) => pid);
    await eventually('zombies to be reaped', () => {
      const others = first.others();
      return dead.every((pid) => others.get(pid)?.state !== 'Z');
    });
    await eventually('the orphan of the visitor to be reaped', () => {
      const inside = Number(entered.stdout.trim());
      return spawnSync('nsenter', [...exec.slice(0, 4), 'test', '-d', `/proc/${inside}`]).status === 1;
    });
    await eventually('no sleeper of an earlier run to be left', () => {
      const orphans = [...first.others().values()].filter(
        ({ parent, state }) => parent === first.pid && state === 'S',
      );
      // The current child, the warm one, and one of each kind that was left to us a moment ago.
      return orphans.length <= 4;
    });
    first.signal('SIGTERM');
    expect(await first.ended).toEqual({ code: 0, signal: null });
  });

  it.each<[string, number, string, string[]]>([
    ['a completed run', 0, 'turns:\n  - final: done\n', []],
    ['a crashed run', 1, 'turns:\n  - crash: 3\n', []],
    ['a refused task', 5, 'turns:\n  - refuse: "cannot be done"\n', []],
    ['an unreachable model', 4, 'turns:\n  - fail: unreachable\n', []],
    ['a spent step budget', 7, 'turns:\n  - loop: { name: x, arguments: {} }\n', ['--max-steps', '1']],
    ['a deadline', 124, 'turns:\n  - hang: true\n', ['--deadline', '1s']],
  ])('%s ends it with its exit code (%i)', async (_what, code, playbook, flags) => {
    const first = run(playbook, ...flags);
    expect(await first.ended).toEqual({ code, signal: null });
  });

  it('a bad flag ends it with 2 before anything has happened', async () => {
    const first = new FirstProcess(['run', 'x', '--no-such-flag']);
    expect(await first.ended).toEqual({ code: 2, signal: null });
    expect(first.said.join('\n')).toContain('--no-such-flag');
    expect(first.events).not.toContain('proc.start');
  });

  it('nothing of its namespace is left when it has ended', async () => {
    const first = run('turns:\n  - fork: ordinary\n  - fork: setsid\n  - hang: true\n');
    await first.saw('loop.start');
    await eventually('the grandchildren to run', () => first.others().size >= 3);
    const pids = [...first.others().keys()];
    first.signal('SIGTERM');
    expect(await first.ended).toEqual({ code: 0, signal: null });
    const left = pids.filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.startsWith('Z') === false;
      } catch {
        return false;
      }
    });
    expect(left).toEqual([]);
  });
});
