import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Fleet } from '../fleet/fleet.ts';
import { InboxClient, tally } from '../fleet/inbox-client.ts';
import { WorkStats } from '../fleet/work-stats.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const ROUTE = 'soak';
/** A kill costs the items under it an attempt; this many are never reached by chance. */
const MAX_ATTEMPTS = '1000';
/** Longest a supervisor stands still, ms: well past the lease time. */
const LONGEST_FREEZE_MS = 7_000;

export interface SoakOptions {
  readonly supervisors: number;
  readonly items: number;
  /** The coordination server's database. Default: a SQLite file. */
  readonly database?: string;
  /** Between two blows at most this long, ms. */
  readonly calmMs: number;
  /** In [0, 1). */
  readonly random: () => number;
  readonly say: (line: string) => void;
  /** Longest the whole may take, ms. */
  readonly budgetMs: number;
}

export interface SoakReport {
  readonly items: number;
  readonly seconds: number;
  readonly blows: Readonly<Record<string, number>>;
  readonly grants: number;
  /** Items without a side effect. */
  readonly lost: readonly string[];
  /** Side effects beyond one of an item: two keys, or one key twice. */
  readonly duplicates: number;
  /** Items the ledger does not call done. */
  readonly open: readonly string[];
  /** Items that more than one holder was told to have settled. */
  readonly settledTwice: readonly string[];
  /** Leases that were granted to two holders. */
  readonly leasesTwice: readonly string[];
  readonly exits: readonly (number | string | null)[];
}

/** A fleet whose supervisors are killed and stopped at random while it works through a full inbox. */
export async function soak(options: SoakOptions): Promise<SoakReport> {
  const state = await mkdtemp(join(tmpdir(), 'agentd-soak-'));
  const documents = join(state, 'inbox');
  await mkdir(documents);
  for (let index = 0; index < options.items; index++) {
    await writeFile(join(documents, `document-${index}.txt`), `The body of document ${index}.\n`);
  }
  let fleet: Fleet | null = null;
  try {
    fleet = await Fleet.start({
      documents,
      state,
      supervisors: Array.from({ length: options.supervisors }, () => []),
      common: ['--config', join(HERE, 'agentd.yaml')],
      env: { PLAYBOOK: join(HERE, 'playbook.yaml') },
      coordinate: ['--max-attempts', MAX_ATTEMPTS],
      ...(options.database === undefined ? {} : { database: options.database }),
    });
    return await new Soak(fleet, options).run();
  } finally {
    await ended(fleet);
    await rm(state, { recursive: true, force: true });
  }
}

async function ended(fleet: Fleet | null): Promise<void> {
  if (fleet === null) return;
  fleet.kill();
  await Promise.all([...fleet.supervisors, fleet.coordinator, fleet.inbox].map(({ exited }) => exited));
}

class Soak {
  private readonly blows: Record<string, number> = {};
  private readonly acks = new Map<string, number>();
  private readonly holders = new Map<string, number>();
  private grants = 0;

  constructor(
    private readonly fleet: Fleet,
    private readonly options: SoakOptions,
  ) {
    fleet.onLine((_, line) => {
      if (line.event === 'claim.acked') add(this.acks, String(line.item));
      if (line.event !== 'claim.granted') return;
      this.grants++;
      add(this.holders, String(line.lease_id));
    });
  }

  async run(): Promise<SoakReport> {
    const { fleet, options } = this;
    const started = performance.now();
    // One after the other: a hundred thousand subscriptions at once say nothing about claims.
    for (let index = 0; index < options.supervisors; index++) await fleet.startSupervisor(index);
    const inbox = await InboxClient.connect(fleet.inboxUrl);
    try {
      const end = started + options.budgetMs;
      const settled = this.settled(inbox, end);
      await this.trouble(settled);
      const open = await settled;
      const documents = await inbox.documents();
      const results = await inbox.results();
      const { duplicates, lost } = tally(documents, results);
      const exits = await fleet.stop();
      return {
        items: documents.length,
        seconds: Math.round((performance.now() - started) / 1_000),
        blows: this.blows,
        grants: this.grants,
        lost,
        duplicates,
        open,
        settledTwice: moreThanOnce(this.acks),
        leasesTwice: moreThanOnce(this.holders),
        exits: exits.map(({ code, signal }) => signal ?? code),
      };
    } finally {
      await inbox.close();
    }
  }

  /** Blow after blow, until every item is settled. Whoever was hit is well again afterwards. */
  private async trouble(settled: Promise<unknown>): Promise<void> {
    const { random, calmMs } = this.options;
    let over = false;
    const done = settled.then(() => {
      over = true;
    });
    while (!over) {
      await Promise.race([pause(random() * calmMs), done]);
      if (over) break;
      const index = Math.floor(random() * this.options.supervisors);
      if (random() < 0.6) await this.kill(index);
      else await this.freeze(index, random() * LONGEST_FREEZE_MS, done);
    }
  }

  private async kill(index: number): Promise<void> {
    this.blows.killed = (this.blows.killed ?? 0) + 1;
    const victim = this.fleet.supervisors[index];
    victim?.kill('SIGKILL');
    await victim?.exited;
    await this.fleet.startSupervisor(index);
  }

  private async freeze(index: number, ms: number, done: Promise<void>): Promise<void> {
    this.blows.frozen = (this.blows.frozen ?? 0) + 1;
    const victim = this.fleet.supervisors[index];
    victim?.kill('SIGSTOP');
    await Promise.race([pause(ms), done]);
    victim?.kill('SIGCONT');
  }

  /** Resolves when the ledger calls every item done, or time is up; those it does not. */
  private async settled(inbox: InboxClient, end: number): Promise<string[]> {
    const stats = new WorkStats(this.fleet.coordUrl, ROUTE);
    let told = 0;
    // The count of side effects is cheap to ask for; the ledger is asked item by item, at the end.
    for (;;) {
      const finished = await inbox.finished();
      if (finished >= this.options.items || performance.now() > end) break;
      if (finished >= told + 250) {
        told = finished;
        this.options.say(`${finished} of ${this.options.items} items, ${JSON.stringify(this.blows)}`);
      }
      await pause(250);
    }
    let open = await inbox.documents();
    for (;;) {
      open = await stats.open(open);
      if (open.length === 0 || performance.now() > end) return open;
      await pause(250);
    }
  }
}

function add(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function moreThanOnce(counts: ReadonlyMap<string, number>): string[] {
  return [...counts].filter(([, count]) => count > 1).map(([key]) => key);
}

/** Whether a soak went as it must. */
export function isGood(report: SoakReport): boolean {
  const { lost, open, duplicates, settledTwice, leasesTwice, exits } = report;
  const nothing = [lost, open, settledTwice, leasesTwice].every((list) => list.length === 0);
  return nothing && duplicates === 0 && exits.every((exit) => exit === 0);
}
