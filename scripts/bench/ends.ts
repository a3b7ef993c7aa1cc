import { setTimeout as pause } from 'node:timers/promises';
import { cpuMs, withSupervisor } from './one-supervisor.ts';
import { print, quantile } from './report.ts';

const STUCK = 12;
const IN_FLIGHT = 50;
const STORM_MS = 20_000;

/** How runs end against their will, and what a child that cannot live costs. */
export async function run(): Promise<void> {
  await stuck();
  await drain();
  await storm();
}

/** A child whose event loop is blocked and whose grandchild ignores SIGTERM: it takes every rung, with its graces. */
async function stuck(): Promise<void> {
  const setup = {
    turns: '  - fork: ignores_sigterm\n  - spin: true',
    limits: 'no_progress: 1s',
    maxInflight: 1,
  };
  await withSupervisor(setup, async ({ fleet, drop }) => {
    const times: number[] = [];
    let verdict = 0;
    let enough = (): void => undefined;
    const done = new Promise<void>((resolve) => {
      enough = resolve;
    });
    fleet.onLine((_, line) => {
      if (line.event === 'subagent.stuck') verdict = Date.parse(String(line.ts));
      if (line.event === 'subagent.exit' && verdict > 0) {
        times.push(Date.parse(String(line.ts)) - verdict);
        if (times.length >= STUCK) enough();
      }
    });
    await fleet.startSupervisor(0);
    for (let index = 0; index < STUCK; index++) await drop(`stuck-${index}.txt`);
    await done;
    print({
      what: 'stuck verdict → empty group, graces of 5 + 2 s, p50',
      value: quantile(times, 0.5),
      unit: 'ms',
    });
    print({
      what: 'stuck verdict → empty group, graces of 5 + 2 s, max',
      value: Math.max(...times),
      unit: 'ms',
    });
  });
}

async function drain(): Promise<void> {
  const setup = {
    turns: '  - hang: true',
    maxInflight: IN_FLIGHT,
    limits: `max_total_subagents: ${IN_FLIGHT}`,
    flags: ['--drain-timeout', '10s'],
  };
  await withSupervisor(setup, async ({ fleet, drop }) => {
    let started = 0;
    let all = (): void => undefined;
    const running = new Promise<void>((resolve) => {
      all = resolve;
    });
    fleet.onLine((_, line) => {
      if (line.event === 'loop.start' && ++started === IN_FLIGHT) all();
    });
    const supervisor = await fleet.startSupervisor(0);
    for (let index = 0; index < IN_FLIGHT; index++) await drop(`hang-${index}.txt`);
    await running;
    const start = performance.now();
    supervisor.kill('SIGTERM');
    const { code } = await supervisor.exited;
    print({
      what: `SIGTERM → exit ${code}, ${IN_FLIGHT} runs that hang, drain timeout 10 s`,
      value: performance.now() - start,
      unit: 'ms',
    });
  });
}

/** Runs that crash as soon as they begin, until the supervisor gives up on them. */
async function storm(): Promise<void> {
  const flags = ['--mode', 'loop'];
  await withSupervisor({ turns: '  - crash: 1', flags }, async ({ fleet }) => {
    let crashes = 0;
    fleet.onLine((_, line) => {
      if (line.event === 'subagent.exit') crashes++;
    });
    const supervisor = await fleet.startSupervisor(0);
    const start = performance.now();
    const first = await cpuMs(supervisor.pid);
    let last = first;
    let ended = false;
    void supervisor.exited.then(() => {
      ended = true;
    });
    while (!ended && performance.now() - start < STORM_MS) {
      await pause(200);
      last = (await cpuMs(supervisor.pid).catch(() => null)) ?? last;
    }
    const ms = performance.now() - start;
    const how = ended ? 'until it gave up' : 'and going on';
    print({
      what: `restart storm, crashes in ${(ms / 1000).toFixed(1)} s, ${how}`,
      value: crashes,
      unit: '',
    });
    const share = (used: number): number => (used / ms) * 100;
    print({ what: '  the supervisor', value: share(last.own - first.own), unit: '% of a core' });
    print({ what: '  its children', value: share(last.reaped - first.reaped), unit: '% of a core' });
  });
}
