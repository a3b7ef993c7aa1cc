import { AgentdError } from '../../protocol/errors.ts';

/** One request waiting to run inside a transaction. `run` may be called again after a rollback. */
interface Job<Tx> {
  readonly run: (tx: Tx) => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Runs the functions in one transaction and resolves with their results after the commit. */
export type CommitBatch<Tx> = (runs: readonly ((tx: Tx) => unknown)[]) => Promise<readonly unknown[]>;

export interface GroupCommitOptions<Tx> {
  readonly commit: CommitBatch<Tx>;
  /** Most requests that share one transaction. */
  readonly maxBatch: number;
  /** Most requests waiting; one more is refused (invariant 8). */
  readonly maxWaiting: number;
}

/**
 * Group commit: what is asked for in one turn of the event loop shares one transaction, and each
 * caller is answered only after its commit (invariant 11). A batch that fails is run again one by
 * one, so that one bad request cannot fail its neighbours.
 */
export class GroupCommit<Tx> {
  private waiting: Job<Tx>[] = [];
  private running: Promise<void> | null = null;

  constructor(private readonly options: GroupCommitOptions<Tx>) {}

  /** @throws AgentdError LEDGER_OVERLOADED when too many requests wait, or what the commit throws */
  run<T>(job: (tx: Tx) => T): Promise<T> {
    if (this.waiting.length >= this.options.maxWaiting) {
      return Promise.reject(
        new AgentdError('LEDGER_OVERLOADED', `${this.waiting.length} requests already wait for the ledger`),
      );
    }
    const done = new Promise<T>((resolve, reject) => {
      // The value handed to `resolve` is what `job` returned: the pairing is by position.
      this.waiting.push({ run: job, resolve: (value) => resolve(value as T), reject });
    });
    if (this.running === null) {
      const turn = new Promise<void>((resolve) => setImmediate(resolve));
      this.running = turn.then(() => this.drain());
    }
    return done;
  }

  /** Resolves when nothing waits and nothing runs. */
  async idle(): Promise<void> {
    while (this.running !== null) await this.running;
  }

  private async drain(): Promise<void> {
    while (this.waiting.length > 0) {
      const batch = this.waiting.splice(0, this.options.maxBatch);
      await this.settle(batch);
      // What arrived over sockets meanwhile joins the next batch.
      if (this.waiting.length === 0) break;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    this.running = null;
    if (this.waiting.length > 0) this.running = this.drain();
  }

  private async settle(batch: readonly Job<Tx>[]): Promise<void> {
    try {
      const values = await this.options.commit(batch.map((job) => job.run));
      batch.forEach((job, index) => {
        job.resolve(values[index]);
      });
    } catch (error) {
      const [only] = batch;
      if (batch.length === 1 && only !== undefined) only.reject(error);
      else if (isOutage(error)) for (const job of batch) job.reject(error);
      else for (const job of batch) await this.settle([job]);
    }
  }
}

/** The database itself is away: asking again for each request would only multiply the wait. */
function isOutage(error: unknown): boolean {
  return error instanceof AgentdError && error.kind === 'retry';
}
