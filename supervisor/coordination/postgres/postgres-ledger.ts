import { setTimeout as pause } from 'node:timers/promises';
import type { Pool } from 'pg';
import { AgentdError } from '../../../protocol/errors.ts';
import { GroupCommit } from '../group-commit.ts';
import type {
  AckRequest,
  ClaimAnswer,
  ClaimedWork,
  ClaimNextRequest,
  ClaimRequest,
  Ledger,
  LedgerPolicy,
  LedgerStats,
  ListFilter,
  ListPage,
  ReleaseRequest,
  RenewRequest,
  SettleAnswer,
  SubmitAnswer,
  SubmitRequest,
  TendReport,
  WorkRecord,
} from '../ledger.ts';
import { PendingSignal } from '../pending-signal.ts';
import * as operations from '../work-operations.ts';
import { type PostgresJob, runBatch } from './batch.ts';
import { databaseName, openPool, withClient } from './connections.ts';
import { CommitUnknown, failureOf, reasonOf } from './failures.ts';
import { NOTIFY_PENDING, PendingListener } from './listener.ts';
import { migrate } from './migrations.ts';
import { PostgresReader } from './reader.ts';
import { isDue, pruneLanes, tend } from './tender.ts';

export interface PostgresLedgerOptions {
  /** postgres://… */
  readonly url: string;
  readonly policy: LedgerPolicy;
  /** Told once when the connection that hears other servers is lost. */
  readonly onTrouble?: (reason: string) => void;
}

/** Below the size of the pool: questions and housekeeping need a connection too. */
const PARALLEL_BATCHES = 3;
const MAX_BATCH = 256;
const MAX_WAITING = 50_000;
const TEND_LIMIT = 256;
/** Shortest time between two notifications to the other servers, ms. */
const NOTIFY_INTERVAL_MS = 50;
/** How long a batch is tried again while the server is away or others are in the way, ms. */
const RETRY_BUDGET_MS = 5_000;
/** Rounds of housekeeping between two looks at empty lanes. */
const PRUNE_EVERY = 100;
const SLOTS = 32;

/** The ledger in a PostgreSQL database, shared by any number of servers on any number of machines. */
export class PostgresLedger implements Ledger {
  private readonly commits: GroupCommit<PostgresJob>;
  private readonly signal = new PendingSignal();
  private readonly reader: PostgresReader;
  private readonly listener: PendingListener;
  private readonly slot = Math.floor(Math.random() * SLOTS);
  private notifiedAt = Number.NEGATIVE_INFINITY;
  private notifyTimer: NodeJS.Timeout | null = null;
  private tending: Promise<void> | null = null;
  private rounds = 0;
  private closed: Promise<void> | null = null;

  /**
   * Connects, and creates or migrates the schema.
   *
   * @throws AgentdError LEDGER_UNAVAILABLE or LEDGER_SCHEMA_UNKNOWN
   */
  static async open(options: PostgresLedgerOptions): Promise<PostgresLedger> {
    const pool = openPool(options.url, () => undefined);
    try {
      await withClient(pool, (client) => migrate(client, databaseName(options.url)));
      const ledger = new PostgresLedger(pool, options);
      await ledger.listener.start();
      return ledger;
    } catch (error) {
      await pool.end();
      if (error instanceof AgentdError) throw error;
      throw unavailable(options.url, 'cannot be opened', error);
    }
  }

  private constructor(
    private readonly pool: Pool,
    private readonly options: PostgresLedgerOptions,
  ) {
    this.reader = new PostgresReader(pool);
    this.listener = new PendingListener(
      options.url,
      () => this.signal.raise(),
      (error) => options.onTrouble?.(reasonOf(error)),
    );
    this.commits = new GroupCommit({
      commit: (jobs) => this.commit(jobs),
      parallel: PARALLEL_BATCHES,
      maxBatch: MAX_BATCH,
      maxWaiting: MAX_WAITING,
    });
  }

  claim(request: ClaimRequest): Promise<ClaimAnswer> {
    return this.write({ keys: [request.key], newItems: 1, newLeases: 1 }, (table) =>
      operations.claimOne(table, this.options.policy, request),
    );
  }

  renew(request: RenewRequest): Promise<SettleAnswer> {
    return this.write(byLease(request), (table) => operations.renewOne(table, request));
  }

  ack(request: AckRequest): Promise<SettleAnswer> {
    return this.write(byLease(request), (table) => operations.ackOne(table, request));
  }

  release(request: ReleaseRequest): Promise<SettleAnswer> {
    // Released twice is released once and refused once.
    const needs = { ...byLease(request), repeatable: false };
    return this.write(needs, (table) => operations.releaseOne(table, request));
  }

  submit(request: SubmitRequest): Promise<SubmitAnswer> {
    return this.write({ keys: [request.key, ...request.dependsOn], newItems: 1 }, (table) =>
      operations.submitOne(table, this.options.policy, request),
    );
  }

  async claimNext(request: ClaimNextRequest): Promise<readonly ClaimedWork[]> {
    await this.tendWhenDue();
    // Run again it would claim others, and nobody would know of the first.
    const needs = { newLeases: request.max, next: request, repeatable: false };
    return await this.write(needs, (table, queueOf) => queueOf(request).claim(table, request));
  }

  requeue(workId: string): Promise<SettleAnswer> {
    return this.write({ keys: [workId] }, (table) => operations.requeueOne(table, workId));
  }

  drop(workId: string): Promise<SettleAnswer> {
    return this.write({ keys: [workId] }, (table) => operations.dropOne(table, workId));
  }

  async tend(): Promise<TendReport> {
    return await this.guarded(async () => {
      this.rounds += 1;
      if (this.rounds % PRUNE_EVERY === 0) await withClient(this.pool, pruneLanes);
      if (!(await isDue(this.pool, this.options.policy)))
        return { expired: 0, woken: 0, forgotten: 0, more: false };
      return await this.tendNow();
    });
  }

  stats(): Promise<LedgerStats> {
    return this.guarded(() => this.reader.stats());
  }

  find(workId: string): Promise<WorkRecord | null> {
    return this.guarded(() => this.reader.find(workId));
  }

  list(filter: ListFilter): Promise<ListPage> {
    return this.guarded(() => this.reader.list(filter));
  }

  pending(limit: number): Promise<readonly WorkRecord[]> {
    return this.guarded(() => this.reader.pending(limit));
  }

  onPending(listener: () => void): () => void {
    return this.signal.listen(listener);
  }

  async ping(): Promise<void> {
    await this.guarded(() => this.pool.query('SELECT 1'));
  }

  close(): Promise<void> {
    this.closed ??= this.end();
    return this.closed;
  }

  private async end(): Promise<void> {
    await this.commits.idle();
    this.signal.close();
    if (this.notifyTimer !== null) clearTimeout(this.notifyTimer);
    await this.listener.close();
    await this.pool.end();
  }

  private write<T>(
    needs: Partial<Omit<PostgresJob, 'run'>>,
    run: (...args: Parameters<PostgresJob['run']>) => T,
  ): Promise<T> {
    if (this.closed !== null) return Promise.reject(unavailable(this.options.url, 'is closed', null));
    const nothing = { keys: [], ids: [], newItems: 0, newLeases: 0, next: null, repeatable: true };
    // What comes back is what `run` returned: results are paired with jobs by position.
    return this.guarded(() => this.commits.run({ ...nothing, ...needs, run }) as Promise<T>);
  }

  private async commit(jobs: readonly PostgresJob[]): Promise<readonly unknown[]> {
    const repeatable = jobs.every((job) => job.repeatable);
    const { values, readied } = await this.retrying(
      () => withClient(this.pool, (client) => runBatch(client, jobs, this.options.policy, this.slot)),
      repeatable,
    );
    if (readied) this.announce();
    return values;
  }

  /** @param repeatable whether `attempt` may run again after a commit that may have happened */
  private async retrying<T>(attempt: () => Promise<T>, repeatable: boolean): Promise<T> {
    const end = performance.now() + RETRY_BUDGET_MS;
    for (let tries = 0; ; tries++) {
      try {
        return await attempt();
      } catch (error) {
        const failure = failureOf(error);
        if (failure === 'fault') throw error;
        const unknown = error instanceof CommitUnknown && failure === 'outage';
        if (unknown && !repeatable) throw unavailable(this.options.url, 'did not answer', error);
        if (performance.now() > end || this.closed !== null)
          throw unavailable(this.options.url, 'cannot be used', error);
        const longest = failure === 'conflict' ? 10 : 250;
        await pause(Math.random() * Math.min(longest, 2 ** tries));
      }
    }
  }

  /** Housekeeping for a caller that wants the next item: shared by all that ask at the same time. */
  private tendWhenDue(): Promise<void> {
    this.tending ??= this.guarded(async () => {
      if (await isDue(this.pool, this.options.policy)) await this.tendNow();
    }).finally(() => {
      this.tending = null;
    });
    return this.tending;
  }

  private async tendNow(): Promise<TendReport> {
    const { value, readied } = await this.retrying(
      () => withClient(this.pool, (client) => tend(client, this.options.policy, this.slot, TEND_LIMIT)),
      true,
    );
    if (readied) this.announce();
    return value;
  }

  /** Tells listeners here at once and the other servers soon. */
  private announce(): void {
    this.signal.raise();
    if (this.notifyTimer !== null || this.closed !== null) return;
    const wait = Math.max(0, this.notifiedAt + NOTIFY_INTERVAL_MS - performance.now());
    this.notifyTimer = setTimeout(() => {
      this.notifyTimer = null;
      this.notifiedAt = performance.now();
      // A server that misses it looks at the queue again when its own housekeeping finds something.
      this.pool.query(NOTIFY_PENDING).catch((error: unknown) => this.options.onTrouble?.(reasonOf(error)));
    }, wait);
  }

  private async guarded<T>(query: () => Promise<T>): Promise<T> {
    try {
      return await query();
    } catch (error) {
      throw error instanceof AgentdError ? error : unavailable(this.options.url, 'cannot be used', error);
    }
  }
}

function byLease({ leaseId }: { readonly leaseId: string }): { readonly ids: readonly number[] } {
  const id = operations.itemOfLease(leaseId);
  return { ids: id === null ? [] : [id] };
}

function unavailable(url: string, what: string, error: unknown): AgentdError {
  const reason = error === null ? '' : `: ${reasonOf(error)}`;
  return new AgentdError('LEDGER_UNAVAILABLE', `the ledger ${databaseName(url)} ${what}${reason}`, {
    cause: error,
  });
}
