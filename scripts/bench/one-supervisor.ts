import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Fleet } from '../fleet/fleet.ts';

export interface Setup {
  /** Turns of a playbook, YAML; default: answers at once. */
  readonly turns?: string;
  /** Lines of configuration under the `limits` key. */
  readonly limits?: string;
  readonly maxInflight?: number;
  readonly flags?: readonly string[];
}

/** One supervisor that watches a folder, debounce 0, no claims. */
export interface Bench {
  readonly fleet: Fleet;
  /** Drops a file into the folder, or changes it. */
  drop(name: string, body?: string): Promise<void>;
}

/** Sets it up, does the work, and cleans up whatever happens. The work starts supervisor 0 itself. */
export async function withSupervisor(setup: Setup, work: (bench: Bench) => Promise<void>): Promise<void> {
  const state = await mkdtemp(join(tmpdir(), 'agentd-bench-'));
  const documents = join(state, 'inbox');
  await mkdir(documents);
  const playbook = join(state, 'playbook.yaml');
  if (setup.turns !== undefined) await writeFile(playbook, `turns:\n${setup.turns}\n`);
  const config = join(state, 'agentd.yaml');
  await writeFile(
    config,
    `agent: { instruction: bench }
intelligence: { endpoints: ["script:${setup.turns === undefined ? 'final' : playbook}"] }
mcp: { servers: [ { name: inbox, endpoint: "\${INBOX_URL}" } ] }
routes: [ { match: "inbox:///**", debounce: 0, max_inflight: ${setup.maxInflight ?? 8} } ]
limits: { ${setup.limits ?? ''} }
`,
  );
  const fleet = await Fleet.start({
    documents,
    state,
    common: ['--config', config],
    supervisors: [setup.flags ?? []],
  });
  try {
    await work({ fleet, drop: (name, body = 'x') => writeFile(join(documents, name), body) });
    await fleet.stop();
  } finally {
    fleet.kill();
    await rm(state, { recursive: true, force: true });
  }
}

/** USER_HZ is 100 on every Linux this runs on. */
const TICKS_PER_SECOND = 100;

/** User and system time of a process and of the children it has reaped, ms (proc(5), fields 14 to 17). */
export async function cpuMs(pid: number): Promise<{ readonly own: number; readonly reaped: number }> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ms = (at: number): number => (Number(fields[at]) * 1000) / TICKS_PER_SECOND;
  return { own: ms(11) + ms(12), reaped: ms(13) + ms(14) };
}

/** Resident memory of a process, MB. */
export async function rssMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? Number.NaN) / 1024;
}
