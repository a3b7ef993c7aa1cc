import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Fleet } from '../fleet/fleet.ts';
import { print } from './report.ts';

const WATCH_MS = 30_000;
/** V8 gives back the memory of the start in full collections of its own over the first half minute. */
const SETTLE_MS = 35_000;
/** USER_HZ is 100 on every Linux this runs on. */
const TICKS_PER_SECOND = 100;

/** What a supervisor with subscriptions, a health thread and one warm child costs while idle. */
export async function run(): Promise<void> {
  const state = await mkdtemp(join(tmpdir(), 'agentd-bench-'));
  const documents = join(state, 'inbox');
  await mkdir(documents);
  const config = join(state, 'agentd.yaml');
  await writeFile(
    config,
    `agent: { instruction: bench }
intelligence: { endpoints: ["script:final"] }
mcp: { servers: [ { name: inbox, endpoint: "\${INBOX_URL}" } ] }
routes: [ { match: "inbox:///**" } ]
`,
  );
  const common = ['--config', config, '--metrics-addr', '127.0.0.1:0'];
  const fleet = await Fleet.start({ documents, state, common, supervisors: [[]] });
  try {
    const supervisor = await fleet.startSupervisor(0);
    await pause(SETTLE_MS);
    const before = await cpuTicks(supervisor.pid);
    await pause(WATCH_MS);
    const used = ((await cpuTicks(supervisor.pid)) - before) / TICKS_PER_SECOND;
    print({
      what: `idle CPU over ${WATCH_MS / 1000} s`,
      value: (used / (WATCH_MS / 1000)) * 100,
      unit: '% of a core',
      target: '≤ 0.3',
    });
    print({
      what: 'idle RSS',
      value: (await statusKb(supervisor.pid, 'VmRSS')) / 1024,
      unit: 'MB',
      target: '≤ 110',
    });
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
  } finally {
    await fleet.stop();
    await rm(state, { recursive: true, force: true });
  }
}

/** User and system time of a process, clock ticks (proc(5), fields 14 and 15). */
async function cpuTicks(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

async function statusKb(pid: number, key: string): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? Number.NaN);
}

async function privateKb(pid: number): Promise<number> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  return [...rollup.matchAll(/^Private_\w+:\s+(\d+)/gm)].reduce((sum, match) => sum + Number(match[1]), 0);
}

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text.trim().split(' ').filter(Boolean).map(Number);
}
