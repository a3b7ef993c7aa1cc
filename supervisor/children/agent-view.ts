import type { Health } from './liveness.ts';
import type { ProcessWatch } from './process-watch.ts';
import type { Entry } from './run-book.ts';
import type { Usage } from './usage.ts';

/** One agent that has not settled, as operators see it. */
export interface AgentView {
  readonly runId: string;
  readonly path: string;
  /** Null while it waits for a child. */
  readonly pid: number | null;
  /** Of its child; `waiting` while it has none. */
  readonly state: string;
  readonly health: Health;
  /** Since its launch, ms. */
  readonly ageMs: number;
  /** What its process was last seen to use; null before the first sample. */
  readonly usage: Usage | null;
}

export function agentView({ run, child }: Entry, watch: ProcessWatch, now: number): AgentView {
  const pid = child?.pid ?? null;
  return {
    runId: run.spec.runId,
    path: run.path,
    pid,
    state: child?.name ?? 'waiting',
    health: child?.health ?? 'healthy',
    ageMs: Math.max(0, Math.round(now - run.launchedAt)),
    usage: pid === null ? null : watch.usageOf(pid),
  };
}
