import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Fleet } from '../fleet/fleet.ts';
import { InboxClient } from '../fleet/inbox-client.ts';
import { descendants, openDescriptors, zombies } from '../fleet/processes.ts';
import { WorkStats } from '../fleet/work-stats.ts';
import { StallWatch } from './stall-watch.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));
/** Kinds whose run files a result when it is let. */
const WORKING = ['plain', 'forks', 'stderr', 'logs'];
const FAILING = ['crash', 'hang', 'spin', 'stdout', 'garbage'];
const SUPERVISORS = 2;
const MAX_ATTEMPTS = 3;
const DESCRIPTORS_SETTLE_MS = 45_000;
/** Connections are pooled, so their number at rest varies by a few. */
export const TOLERATED_DESCRIPTORS = 10;

export interface ChaosOptions {
  readonly seconds: number;
  readonly random: () => number;
  readonly say: (line: string) => void;
}

export interface ChaosReport {
  readonly documents: number;
  readonly blows: Readonly<Record<string, number>>;
  /** Documents with neither a result nor a dead letter. */
  readonly unaccounted: readonly string[];
  /** Side effects beyond one for each key. */
  readonly duplicates: number;
  readonly leftover: readonly number[];
  readonly zombies: number;
  /** Descriptors open at the end beyond those at the start, by supervisor. */
  readonly descriptorGrowth: readonly number[];
  readonly exits: readonly (number | string | null)[];
  readonly worstStallMs: number;
}

/** A fleet under load while its processes are killed, stopped and flooded and its servers vanish. */
export async function chaos(options: ChaosOptions): Promise<ChaosReport> {
  const state = await mkdtemp(join(tmpdir(), 'agentd-chaos-'));
  const documents = join(state, 'inbox');
  await mkdir(documents);
  const fleet = await Fleet.start({
    documents,
    state,
    supervisors: Array.from({ length: SUPERVISORS }, () => []),
    common: ['--config', join(HERE, 'agentd.yaml'), '--metrics-addr', '127.0.0.1:0'],
    env: { PLAYBOOK: join(HERE, 'playbook.yaml') },
    coordinate: ['--max-attempts', String(MAX_ATTEMPTS)],
  });
  try {
    await fleet.startSupervisors();
    return await new Chaos(fleet, documents, options).run();
  } finally {
    fleet.kill();
    await rm(state, { recursive: true, force: true });
  }
}

class Chaos {
  private readonly blows: Record<string, number> = {};
  private written: string[] = [];

  constructor(
    private readonly fleet: Fleet,
    private readonly documents: string,
    private readonly options: ChaosOptions,
  ) {}

  async run(): Promise<ChaosReport> {
    const { fleet, options } = this;
    const pids = fleet.supervisors.map(({ pid }) => pid);
    await this.settle(1, 60_000); // one document through, so that everything lazy is loaded
    const before = pids.map(openDescriptors);
    const stalls = new StallWatch(() => fleet.metricsUrls.filter((url) => url !== undefined));
    const end = performance.now() + options.seconds * 1000;
    while (performance.now() < end) {
      await this.write();
      await this.blow(pids);
      await pause(100 + options.random() * 300);
    }
    options.say(`${this.written.length} documents, ${JSON.stringify(this.blows)}; waiting for calm`);
    const unaccounted = await this.settle(this.written.length, 180_000);
    const worstStallMs = await stalls.stop();
    const inbox = await InboxClient.connect(fleet.inboxUrl);
    const results = await inbox.results();
    await inbox.close();
    const keys = new Set(results.map((one) => one.idempotency_key));
    const descriptorGrowth = await this.descriptorGrowth(pids, before);
    const dead = pids.flatMap(zombies).length;
    const exits = await fleet.stop();
    return {
      documents: this.written.length,
      blows: this.blows,
      unaccounted,
      duplicates: results.length - keys.size,
      leftover: pids.flatMap((pid) => descendants(pid).map((one) => one.pid)),
      zombies: dead,
      descriptorGrowth,
      exits: exits.map(({ code, signal }) => signal ?? code),
      worstStallMs: Math.round(worstStallMs),
    };
  }

  /**
   * What is open beyond the start, once kept-alive connections and samples of processes that have
   * gone have had time to be closed; a leak is what stays.
   */
  private async descriptorGrowth(pids: readonly number[], before: readonly number[]): Promise<number[]> {
    const growth = (): number[] => pids.map((pid, index) => openDescriptors(pid) - (before[index] ?? 0));
    const end = performance.now() + DESCRIPTORS_SETTLE_MS;
    while (growth().some((count) => count > TOLERATED_DESCRIPTORS) && performance.now() < end)
      await pause(500);
    return growth();
  }

  private pick<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.options.random() * items.length)];
  }

  private async write(): Promise<void> {
    const kinds = this.options.random() < 0.75 ? WORKING : FAILING;
    const name = `${this.pick(kinds) ?? 'plain'}-${this.written.length}.txt`;
    const temporary = join(this.documents, `.${name}.tmp`);
    await writeFile(temporary, `document ${this.written.length}`);
    await rename(temporary, join(this.documents, name));
    this.written.push(name);
  }

  /** One random misfortune. */
  private async blow(pids: readonly number[]): Promise<void> {
    const { random } = this.options;
    const dice = random();
    if (dice < 0.03) return this.count('inbox killed', () => this.fleet.restartServer('inbox'));
    if (dice < 0.06) return this.count('coordinator killed', () => this.fleet.restartServer('coordinator'));
    if (dice < 0.09)
      return this.count('coordinator frozen', () => this.freeze(this.fleet.coordinator.pid, 2_000));
    const victim = this.pick(descendants(this.pick(pids) ?? 0));
    if (victim === undefined) return;
    if (dice < 0.3) return this.count('SIGKILL', () => signal(victim.pid, 'SIGKILL'));
    if (dice < 0.4) return this.count('SIGTERM', () => signal(victim.pid, 'SIGTERM'));
    if (dice < 0.6) return this.count('SIGSTOP', () => signal(victim.pid, 'SIGSTOP'));
    if (dice < 0.7) return this.count('SIGCONT', () => signal(victim.pid, 'SIGCONT'));
  }

  private async count(what: string, act: () => void | Promise<void>): Promise<void> {
    this.blows[what] = (this.blows[what] ?? 0) + 1;
    await act();
  }

  private async freeze(pid: number, ms: number): Promise<void> {
    signal(pid, 'SIGSTOP');
    await pause(ms);
    signal(pid, 'SIGCONT');
  }

  /** Waits until every document is done or given up; what is not when time runs out. */
  private async settle(least: number, timeoutMs: number): Promise<string[]> {
    while (this.written.length < least) await this.write();
    const end = performance.now() + timeoutMs;
    const stats = new WorkStats(this.fleet.coordUrl, 'chaos');
    let open = this.written.map((name) => `inbox:///${name}`);
    for (;;) {
      open = await stats.open(open);
      if (open.length === 0 || performance.now() > end) return open;
      await pause(250);
    }
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It was quicker.
  }
}
