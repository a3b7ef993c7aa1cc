import type { Usage } from '../../protocol/frames.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';

/** The lifetime token budget of this process, and what is left of it. */
export class TokenBudget {
  private spent = 0;

  /** @param limit tokens, as it is now; null: unbounded */
  constructor(private readonly limit: () => number | null) {}

  record(usage: Pick<Usage, 'tokens_in' | 'tokens_out'>): void {
    this.spent += usage.tokens_in + usage.tokens_out;
  }

  /** Null: unbounded. Never negative. */
  get remaining(): number | null {
    const limit = this.limit();
    return limit === null ? null : Math.max(0, limit - this.spent);
  }
}

/** Takes what a run used from the budget, and says so once when that was the last of it. */
export function recordSpending(
  budget: TokenBudget,
  usage: Pick<Usage, 'tokens_in' | 'tokens_out'>,
  log: Log,
  metrics: Metrics,
): void {
  const before = budget.remaining;
  budget.record(usage);
  if (before === 0 || budget.remaining !== 0) return;
  metrics.add('agent_limit_exceeded_total', { limit: 'tokens_lifetime' });
  log.warn('limit.exceeded', {
    limit: 'tokens_lifetime',
    msg: 'the lifetime token budget is spent: nothing new starts',
  });
}
