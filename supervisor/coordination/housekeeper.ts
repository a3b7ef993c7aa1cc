import { errorMessage } from '../../protocol/errors.ts';
import type { Log } from '../telemetry/log.ts';
import type { Ledger } from './ledger.ts';

/**
 * Between two looks at what time alone has changed, ms. Claims do not wait for it: a named claim
 * judges its own item, and claim_next does some of the work itself. It bounds how late
 * work://pending and the counts can be.
 */
const INTERVAL_MS = 200;
/** After the database failed, ms. */
const FAILED_INTERVAL_MS = 1_000;

/** Expires leases, wakes delayed items and forgets old ones while nobody asks. */
export class Housekeeper {
  private timer: NodeJS.Timeout | null = null;
  private round: Promise<void> = Promise.resolve();
  private stopped = false;

  constructor(
    private readonly ledger: Ledger,
    private readonly log: Log,
    private readonly onExpired: (count: number) => void = () => {},
  ) {}

  start(): void {
    this.schedule(INTERVAL_MS);
  }

  /** Resolves when the round in progress has ended. */
  async stop(): Promise<void> {
    this.stopped = true;
    if (this.timer !== null) clearTimeout(this.timer);
    await this.round;
  }

  private schedule(delayMs: number): void {
    if (this.stopped) return;
    this.timer = setTimeout(() => {
      this.round = this.tend();
    }, delayMs);
    this.timer.unref();
  }

  private async tend(): Promise<void> {
    try {
      const report = await this.ledger.tend();
      if (report.expired > 0) {
        this.onExpired(report.expired);
        this.log.info('claim.expired', { count: report.expired, msg: 'leases ran out' });
      }
      this.schedule(report.more ? 0 : INTERVAL_MS);
    } catch (error) {
      this.log.warn('config.warn', { msg: `leases could not be checked: ${errorMessage(error)}` });
      this.schedule(FAILED_INTERVAL_MS);
    }
  }
}
