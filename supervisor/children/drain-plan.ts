import type { LadderTimings } from './kill-ladder.ts';

/** When each step of a bounded teardown begins, ms from its start. */
export interface DrainPlan {
  /** Runs may finish their turn until then; afterwards they are cancelled. */
  readonly cancelAt: number;
  readonly termAt: number;
  readonly killAt: number;
  /** What is still there then is reported as not stopped. */
  readonly reportAt: number;
}

/**
 * Fits the rungs of the kill ladder into `budgetMs`: their configured graces where those fit, and
 * fixed shares of the budget where they do not, so that SIGKILL always goes out in time.
 */
export function planDrain(budgetMs: number, timings: LadderTimings): DrainPlan {
  const budget = Math.max(0, budgetMs);
  const kill = Math.min(1_000, budget * 0.15);
  const term = Math.min(timings.termGraceMs, budget * 0.15);
  const cancel = Math.min(timings.cancelGraceMs, budget * 0.2);
  const killAt = budget - kill;
  const termAt = killAt - term;
  return { cancelAt: termAt - cancel, termAt, killAt, reportAt: budget };
}
