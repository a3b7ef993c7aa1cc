import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { cpuMs, rssMb, withSupervisor } from './one-supervisor.ts';
import { print } from './report.ts';

const WATCH_MS = 30_000;
/** V8 gives back the memory of the start in full collections of its own over the first half minute. */
const SETTLE_MS = 35_000;
/** What a supervisor with subscriptions, a health thread and one warm child costs while idle. */
export async function run(): Promise<void> {
  await withSupervisor({ flags: ['--metrics-addr', '127.0.0.1:0'] }, async ({ fleet }) => {
    const supervisor = await fleet.startSupervisor(0);
    await pause(SETTLE_MS);
    const before = (await cpuMs(supervisor.pid)).own;
    await pause(WATCH_MS);
    const used = (await cpuMs(supervisor.pid)).own - before;
    print({
      what: `idle CPU over ${WATCH_MS / 1000} s`,
      value: (used / WATCH_MS) * 100,
      unit: '% of a core',
      target: '≤ 0.3',
    });
    print({ what: 'idle RSS', value: await rssMb(supervisor.pid), unit: 'MB', target: '≤ 110' });
    const [child] = await childrenOf(supervisor.pid);
    if (child !== undefined) {
      print({ what: 'warm child, private memory', value: (await privateKb(child)) / 1024, unit: 'MB' });
    }
    const start = performance.now();
    supervisor.kill('SIGTERM');
    const { code } = await supervisor.exited;
    print({
      what: `SIGTERM → exit ${code}, idle`,
      value: performance.now() - start,
      unit: 'ms',
      target: '≤ 100',
    });
  });
}

async function privateKb(pid: number): Promise<number> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  return [...rollup.matchAll(/^Private_\w+:\s+(\d+)/gm)].reduce((sum, match) => sum + Number(match[1]), 0);
}

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text.trim().split(' ').filter(Boolean).map(Number);
}
