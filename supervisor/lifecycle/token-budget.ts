import type { Usage } from '../../protocol/frames.ts';

/** The lifetime token budget of this process, and what is left of it. */
export class TokenBudget {
  private spent = 0;

  /** @param limit tokens; null: unbounded */
  constructor(private readonly limit: number | null) {}

  record(usage: Pick<Usage, 'tokens_in' | 'tokens_out'>): void {
    this.spent += usage.tokens_in + usage.tokens_out;
  }

  /** Null: unbounded. Never negative. */
  get remaining(): number | null {
    return this.limit === null ? null : Math.max(0, this.limit - this.spent);
  }
}
