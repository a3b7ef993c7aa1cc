import { AgentdError } from '../../protocol/errors.ts';

/** One request waiting for its transaction. The job may be run again after a rollback. */
interface Waiting<Job> {
  readonly job: Job;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Runs the jobs in one transaction and resolves with their results, in order, after the commit. */
export type CommitBatch<Job> = (jobs: readonly Job[]) => Promise<readonly unknown[]>;

export interface GroupCommitOptions<Job> {
  readonly commit: CommitBatch<Job>;
  /** Transactions open at a time. */
  readonly parallel: number;
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
export class GroupCommit<Job> {
  private waiting: Waiting<Job>[] = [];
  private open = 0;
  private scheduled = false;
  private whenIdle: (() => void)[] = [];

  constructor(private readonly options: GroupCommitOptions<Job>) {}

  /** @throws AgentdError LEDGER_OVERLOADED when too many requests wait, or what the commit throws */
  run(job: Job): Promise<unknown> {
    if (this.waiting.length >= this.options.maxWaiting) {
      return Promise.reject(
        new AgentdError('LEDGER_OVERLOADED', `${this.waiting.length} requests already wait for the ledger`),
      );
    }
    const done = new Promise<unknown>((resolve, reject) => {
      this.waiting.push({ job, resolve, reject });
    });
    this.schedule();
    return done;
  }

  /** Resolves when nothing waits and nothing runs. */
  idle(): Promise<void> {
    if (this.waiting.length === 0 && this.open === 0) return Promise.resolve();
    return new Promise((resolve) => this.whenIdle.push(resolve));
  }

  /** At the end of this turn of the event loop, so that what arrived in it is together. */
  private schedule(): void {
    if (this.scheduled || this.open >= this.options.parallel) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      this.start();
    });
  }

  private start(): void {
    while (this.waiting.length > 0 && this.open < this.options.parallel) {
      const batch = this.waiting.splice(0, this.options.maxBatch);
      this.open += 1;
      void this.settle(batch).then(() => {
        this.open -= 1;
        if (this.waiting.length > 0) this.schedule();
        else if (this.open === 0) for (const resolve of this.whenIdle.splice(0)) resolve();
      });
    }
  }

  private async settle(batch: readonly Waiting<Job>[]): Promise<void> {
    try {
      const values = await this.options.commit(batch.map(({ job }) => job));
      batch.forEach(({ resolve }, index) => {
        resolve(values[index]);
      });
    } catch (error) {
      const [only] = batch;
      if (batch.length === 1 && only !== undefined) only.reject(error);
      else if (isOutage(error)) for (const { reject } of batch) reject(error);
      else for (const each of batch) await this.settle([each]);
    }
  }
}

/** The database itself is away: asking again for each request would only multiply the wait. */
function isOutage(error: unknown): boolean {
  return error instanceof AgentdError && error.kind === 'retry';
}
