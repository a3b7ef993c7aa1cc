import type { RunEvent, RunLimits, ToolDescriptor, ToolOutcome, Usage } from '../../protocol/frames.ts';
import type { RunReport } from '../../protocol/run-report.ts';
import type { TerminalStatus } from '../../protocol/terminal-status.ts';

/** What the engine asks of the process side, and what comes back. */

/** One run to be given to a child. */
export interface RunSpec {
  /** The claim key on a claim route, otherwise a fresh ULID. */
  readonly runId: string;
  readonly kind: 'run' | 'session';
  readonly instruction: string;
  readonly event: RunEvent | null;
  /** The run's scope: it can call these and nothing else. */
  readonly tools: readonly ToolDescriptor[];
  readonly limits: RunLimits;
  readonly outputContract: Record<string, unknown> | null;
  /** The context of the run itself. */
  readonly traceparent: string;
  /** The context it was asked for in; absent at the root of a trace. */
  readonly parentTraceparent?: string;
  /** For logs and refusals; a route's name, or null for the root of a one-shot run. */
  readonly route: string | null;
}

/** Why a run was stopped; the first cause wins and is the one reported. */
export type StopCause =
  | 'cancelled'
  | 'drain'
  | 'deadline'
  | 'no_progress'
  | 'wedged'
  | 'memory'
  | 'lease_lost'
  | 'lease_expired'
  | 'parent_ended'
  | 'tree_tokens'
  | 'spawn_failed'
  | 'not_ready'
  | 'protocol'
  | 'vanished'
  | 'forced';

/** How a run ended. */
export interface RunOutcome {
  readonly runId: string;
  readonly agentPath: string;
  readonly route: string | null;
  readonly status: TerminalStatus;
  /** Null when the child ended by itself with a result. */
  readonly cause: StopCause | null;
  readonly result: string;
  readonly hasUsablePartial: boolean;
  readonly usage: Usage;
  readonly error: { readonly type: string; readonly message: string } | null;
  readonly intelligenceFailed: boolean;
  /** Of the leader; null when it was never started. */
  readonly exit: { readonly code: number | null; readonly signal: string | null } | null;
  /** The last rung of the ladder that was needed. */
  readonly finalRung: 'none' | 'cancel' | 'term' | 'kill';
  /** What policy refused the run and its subagents. */
  readonly refusals: RunReport['refusals'];
  readonly traceId: string | null;
  readonly durationMs: number;
}

export type RunMessage =
  /** The run frame was written to a child. `waitMs`: from launch to there. */
  | {
      readonly type: 'run.started';
      readonly runId: string;
      readonly agentPath: string;
      readonly pid: number;
      readonly waitMs: number;
    }
  /** The child's loop has begun. */
  | { readonly type: 'run.begun'; readonly runId: string; readonly agentPath: string }
  | {
      readonly type: 'session.turn';
      readonly runId: string;
      readonly sequence: number;
      readonly status: TerminalStatus;
      readonly result: string;
    }
  /** Whether children can be started has changed. */
  | { readonly type: 'starting'; readonly possible: boolean }
  /** Exactly one for every launch. */
  | { readonly type: 'run.settled'; readonly outcome: RunOutcome };

/** A tool call made for a run; answered by the broker. */
export interface BrokeredCall {
  readonly runId: string;
  readonly agentPath: string;
  readonly traceparent: string;
  readonly descriptor: ToolDescriptor;
  readonly arguments: Record<string, unknown>;
  /** Longest without an answer or progress, ms. */
  readonly timeoutMs: number;
  /** Aborted when the child dies, cancels the call or is stopped: the call is cancelled at the server. */
  readonly signal: AbortSignal;
  progress(note: string): void;
}

/** Never rejects: a failure is an outcome with `is_error`. */
export type CallTool = (call: BrokeredCall) => Promise<ToolOutcome>;

/** Something that was still alive when the supervisor had to stop waiting. */
export interface Unstopped {
  readonly runId: string;
  readonly agentPath: string;
  readonly pid: number;
  readonly state: string;
}

/** The process side, as the engine sees it. */
export interface Children {
  /** Starts a run in a warm or new child. Failure arrives as `run.settled`, never as a throw. */
  launch(spec: RunSpec): void;
  /** Wakes a warm session. Delivered in order, one turn at a time. */
  wake(runId: string, uris: readonly string[], messages: readonly string[]): void;
  /**
   * Begins the kill ladder: cancel frame, SIGTERM to the group, SIGKILL to the group, reap.
   *
   * @param withinMs the group must be gone by then: the graces shrink to fit, and 0 means SIGKILL
   *   at once (a lost lease). Default: the configured graces. A second, shorter call tightens it.
   */
  stop(runId: string, cause: StopCause, withinMs?: number): void;
  pause(runId: string | null): void;
  resume(runId: string | null): void;
  /** How many idle children to keep ready. */
  setWarmTarget(count: number): void;
  readonly active: number;
  readonly warm: number;
  /** False while the breaker for starts is open: what is launched now fails. */
  readonly canStart: boolean;
  /** Lets running work finish its turn, then ladders what is left; resolves within the budget. */
  drain(budgetMs: number): Promise<readonly Unstopped[]>;
  /** SIGKILL to every group, now. Resolves when all are gone or after `budgetMs`. */
  killAll(budgetMs: number): Promise<readonly Unstopped[]>;
}
