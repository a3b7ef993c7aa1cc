import { EXIT, exitCodeFor } from '../../protocol/exit-codes.ts';
import type { RunOutcome } from '../children/run.ts';
import type { Mode } from '../config/config.ts';
import type { RestartVerdict } from '../routing/session-machine.ts';

/** The four modes are one loop with different ends. */

/** What follows a finished root run. */
export type AfterRun =
  | { readonly kind: 'finish'; readonly exitCode: number }
  /** Run again at `at`, monotonic ms. */
  | { readonly kind: 'again'; readonly at: number }
  /** Nothing: the next event or tick will say. */
  | { readonly kind: 'wait' };

export interface AfterRunFacts {
  readonly now: number;
  readonly intervalMs: number;
  readonly budgetRemaining: number | null;
  readonly budgetExitCode: number | null;
  /** Asked only when the run failed. */
  readonly verdict: () => RestartVerdict;
}

/** Decides what follows a root run. `once`: its exit code. `loop`: again, until a clean bound. */
export function afterRootRun(mode: Mode, outcome: RunOutcome, facts: AfterRunFacts): AfterRun {
  if (mode === 'once') return { kind: 'finish', exitCode: exitCodeOf(outcome, facts.budgetExitCode) };
  if (mode !== 'loop') return { kind: 'wait' };
  if (outcome.cause === 'drain') return { kind: 'finish', exitCode: EXIT.OK };
  // The lifetime budget is a clean bound: the loop did what it was allowed to.
  if (facts.budgetRemaining !== null && facts.budgetRemaining <= 0)
    return { kind: 'finish', exitCode: EXIT.OK };
  if (outcome.status === 'refused') return { kind: 'finish', exitCode: EXIT.SEMANTIC };
  if (outcome.status !== 'crashed') return { kind: 'again', at: facts.now + facts.intervalMs };
  const verdict = facts.verdict();
  return verdict.kind === 'retry'
    ? { kind: 'again', at: Math.max(verdict.at, facts.now + facts.intervalMs) }
    : { kind: 'finish', exitCode: exitCodeOf(outcome, facts.budgetExitCode) };
}

/** The exit code of a process whose work was this one run. */
export function exitCodeOf(outcome: RunOutcome, budgetExitCode: number | null): number {
  return exitCodeFor(
    {
      status: outcome.status,
      hasUsablePartial: outcome.hasUsablePartial,
      intelligenceFailed: outcome.intelligenceFailed,
    },
    budgetExitCode ?? undefined,
  );
}
