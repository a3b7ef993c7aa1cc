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
  private running: Promise<void> | null = null;

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
