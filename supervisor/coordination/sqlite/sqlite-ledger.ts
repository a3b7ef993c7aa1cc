import Sqlite, { type Database } from 'better-sqlite3';
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
import { isBusy, isSqliteError, reasonOf, whenFree } from './busy.ts';
import { type LedgerClock, openLedgerClock } from './ledger-clock.ts';
import { migrate } from './migrations.ts';
import { SqliteQueue } from './queue.ts';
import { SqliteReader } from './reader.ts';
import { SqliteTender } from './tender.ts';
import { SqliteWorkTable } from './work-table.ts';

export interface SqliteLedgerOptions {
  readonly path: string;
  readonly policy: LedgerPolicy;
  /** Default: the clock of the file, see ledger-clock.ts. */
  readonly clock?: LedgerClock;
}

/**
 * How long SQLite itself waits for another process's lock, ms. Short: it sleeps in growing steps
 * while the event loop stands still, and a lock is held for one commit.
 */
const LOCK_WAIT_MS = 2;
const MAX_BATCH = 512;
const MAX_WAITING = 50_000;
/** Leases expired and items woken inside a claim, so that housekeeping cannot delay it for long. */
const TEND_IN_CLAIM = 64;

/** The ledger in one SQLite file, shared by any number of processes of one machine. */
export class SqliteLedger implements Ledger {
  private readonly commits: GroupCommit<(table: SqliteWorkTable) => unknown>;
  private readonly signal = new PendingSignal();
  private readonly table: SqliteWorkTable;
  private readonly queue: SqliteQueue;
  private readonly tender: SqliteTender;
  private readonly reader: SqliteReader;
  private readonly sql;
  private dataVersion: number;
  private closed: Promise<void> | null = null;

  /**
   * Opens the file, creating or migrating it.
   *
   * @throws AgentdError LEDGER_UNAVAILABLE (exit 2: it cannot be opened or is no database),
   *   LEDGER_SCHEMA_UNKNOWN
   */
  static async open(options: SqliteLedgerOptions): Promise<SqliteLedger> {
    let db: Database | null = null;
    try {
      db = new Sqlite(options.path, { timeout: LOCK_WAIT_MS });
      const clock = await prepare(db, options);
      return new SqliteLedger(db, options, clock);
    } catch (error) {
      db?.close();
      if (error instanceof AgentdError) throw error;
      throw new AgentdError(
        'LEDGER_UNAVAILABLE',
        `the ledger ${options.path} cannot be opened: ${reasonOf(error)}`,
        {
          cause: error,
          exitCode: 2,
        },
      );
    }
  }

  private constructor(
    private readonly db: Database,
    private readonly options: SqliteLedgerOptions,
    private readonly clock: LedgerClock,
  ) {
    this.table = new SqliteWorkTable(db);
    this.queue = new SqliteQueue(db, this.table, options.policy);
    this.tender = new SqliteTender(db, this.table, options.policy);
    this.reader = new SqliteReader(db);
    this.sql = {
      begin: db.prepare('BEGIN IMMEDIATE'),
      commit: db.prepare('COMMIT'),
      rollback: db.prepare('ROLLBACK'),
    };
    this.commits = new GroupCommit({
      commit: (runs) => this.transaction(runs),
      parallel: 1,
      maxBatch: MAX_BATCH,
      maxWaiting: MAX_WAITING,
    });
    this.dataVersion = this.readDataVersion();
  }

  claim(request: ClaimRequest): Promise<ClaimAnswer> {
    return this.write((table) => operations.claimOne(table, this.options.policy, request));
  }

  renew(request: RenewRequest): Promise<SettleAnswer> {
    return this.write((table) => operations.renewOne(table, request));
  }

  ack(request: AckRequest): Promise<SettleAnswer> {
    return this.write((table) => operations.ackOne(table, request));
  }

  release(request: ReleaseRequest): Promise<SettleAnswer> {
    return this.write((table) => operations.releaseOne(table, request));
  }

  submit(request: SubmitRequest): Promise<SubmitAnswer> {
    return this.write((table) => operations.submitOne(table, this.options.policy, request));
  }

  claimNext(request: ClaimNextRequest): Promise<readonly ClaimedWork[]> {
    return this.write(() => {
      this.tender.tend(TEND_IN_CLAIM);
      return this.queue.claim(request);
    });
  }

  requeue(workId: string): Promise<SettleAnswer> {
    return this.write((table) => operations.requeueOne(table, workId));
  }

  drop(workId: string): Promise<SettleAnswer> {
    return this.write((table) => operations.dropOne(table, workId));
  }

  async tend(): Promise<TendReport> {
    const now = this.clock.now();
    await this.noticeOthers();
    if (!(await this.read(() => this.tender.due(now))))
      return { expired: 0, woken: 0, forgotten: 0, more: false };
    return await this.write(() => this.tender.tend(MAX_BATCH));
  }

  stats(): Promise<LedgerStats> {
    return this.read(() => this.reader.stats(this.clock.now()));
  }

  find(workId: string): Promise<WorkRecord | null> {
    return this.read(() => this.reader.find(workId, this.clock.now()));
  }

  list(filter: ListFilter): Promise<ListPage> {
    return this.read(() => this.reader.list(filter, this.clock.now()));
  }

  pending(limit: number): Promise<readonly WorkRecord[]> {
    return this.read(() => this.reader.pending(limit, this.clock.now()));
  }

  onPending(listener: () => void): () => void {
    return this.signal.listen(listener);
  }

  async ping(): Promise<void> {
    await this.read(() => this.readDataVersion());
  }

  close(): Promise<void> {
    this.closed ??= this.commits.idle().then(() => {
      this.signal.close();
      this.db.close();
    });
    return this.closed;
  }

  private write<T>(job: (table: SqliteWorkTable) => T): Promise<T> {
    if (this.closed !== null) return Promise.reject(this.unavailable(new Error('it is closed')));
    // What comes back is what `job` returned: results are paired with jobs by position.
    return this.commits.run(job) as Promise<T>;
  }

  /** Reads what is committed. Transactions are synchronous, so none is ever open here. */
  private async read<T>(query: () => T): Promise<T> {
    try {
      return await whenFree(query, this.options.path);
    } catch (error) {
      throw error instanceof AgentdError ? error : this.unavailable(error);
    }
  }

  private async transaction(
    runs: readonly ((table: SqliteWorkTable) => unknown)[],
  ): Promise<readonly unknown[]> {
    if (!this.begin()) await whenFree(() => this.sql.begin.run(), this.options.path);
    try {
      this.table.begin(this.clock.now());
      const values = runs.map((run) => run(this.table));
      this.table.flush();
      this.sql.commit.run();
      if (this.table.readied) this.signal.raise();
      return values;
    } catch (error) {
      if (this.db.inTransaction) this.sql.rollback.run();
      throw isSqliteError(error) ? this.unavailable(error) : error;
    }
  }

  /** Takes the lock if it is free, without giving up this turn of the event loop. */
  private begin(): boolean {
    try {
      this.sql.begin.run();
      return true;
    } catch (error) {
      if (isBusy(error)) return false;
      throw isSqliteError(error) ? this.unavailable(error) : error;
    }
  }

  /** Another process may have made items claimable. */
  private async noticeOthers(): Promise<void> {
    const version = await this.read(() => this.readDataVersion());
    if (version === this.dataVersion) return;
    this.dataVersion = version;
    this.signal.raise();
  }

  private readDataVersion(): number {
    return Number(this.db.pragma('data_version', { simple: true }));
  }

  private unavailable(error: unknown): AgentdError {
    return new AgentdError(
      'LEDGER_UNAVAILABLE',
      `the ledger ${this.options.path} cannot be used: ${reasonOf(error)}`,
      {
        cause: error,
      },
    );
  }
}

async function prepare(db: Database, options: SqliteLedgerOptions): Promise<LedgerClock> {
  await whenFree(() => db.pragma('journal_mode = WAL'), options.path);
  // Not the default in WAL mode: an answered request must survive a power cut (invariant 11).
  db.pragma('synchronous = FULL');
  await whenFree(() => db.exec('BEGIN IMMEDIATE'), options.path);
  try {
    migrate(db, options.path);
    const clock = options.clock ?? openLedgerClock(db);
    db.exec('COMMIT');
    return clock;
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK');
    throw error;
  }
}
