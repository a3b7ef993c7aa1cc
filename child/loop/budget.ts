import type { RunLimits, Usage } from '../../protocol/frames.ts';
import type { TokenUsage } from '../model/model.ts';

/** A limit that has been reached, as the terminal status it leads to. */
export type Exhausted = 'exhausted_steps' | 'exhausted_tokens' | 'deadline';

/**
 * What a run has used, and may still use. Checked before each model call and recorded after it, so
 * one call may overshoot the token limit but none starts beyond it. Limits count per task: a
 * session has them afresh at each wake, while usage adds up.
 */
export class Budget {
  private steps = 0;
  private tokensIn = 0;
  private tokensOut = 0;
  private subagents = 0;
  private stepsBefore = 0;
  private tokensBefore = 0;
  private startedAt: number;

  /** @param now monotonic clock, ms */
  constructor(
    private readonly limits: RunLimits,
    private readonly now: () => number,
  ) {
    this.startedAt = now();
  }

  /** Begins a task: the limits count from here. */
  begin(): void {
    this.stepsBefore = this.steps;
    this.tokensBefore = this.tokensIn + this.tokensOut;
    this.startedAt = this.now();
  }

  /** The first limit that leaves no room for another model call. */
  exhausted(): Exhausted | null {
    if (this.msLeft <= 0) return 'deadline';
    if (this.stepsLeft <= 0) return 'exhausted_steps';
    if (this.tokensLeft <= 0) return 'exhausted_tokens';
    return null;
  }

  recordStep(): void {
    this.steps++;
  }

  recordTokens(usage: TokenUsage | null): void {
    this.tokensIn += usage?.tokensIn ?? 0;
    this.tokensOut += usage?.tokensOut ?? 0;
  }

  recordSubagent(): void {
    this.subagents++;
  }

  get stepsLeft(): number {
    return this.limits.max_steps - (this.steps - this.stepsBefore);
  }

  get tokensLeft(): number {
    return this.limits.max_tokens - (this.tokensIn + this.tokensOut - this.tokensBefore);
  }

  /** Until the deadline of the task, ms. */
  get msLeft(): number {
    return this.startedAt + this.limits.deadline_ms - this.now();
  }

  /** Everything since the run began. */
  get usage(): Usage {
    return {
      tokens_in: this.tokensIn,
      tokens_out: this.tokensOut,
      steps: this.steps,
      subagents: this.subagents,
    };
  }
}
