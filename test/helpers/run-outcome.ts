import { NO_USAGE } from '../../protocol/frames.ts';
import type { RunOutcome } from '../../supervisor/children/run.ts';

/** A completed run, with what a test cares about replaced. */
export function runOutcome(over: Partial<RunOutcome> = {}): RunOutcome {
  return {
    runId: 'run-1',
    agentPath: '0',
    route: null,
    status: 'completed',
    cause: null,
    result: 'done',
    hasUsablePartial: false,
    usage: NO_USAGE,
    error: null,
    intelligenceFailed: false,
    exit: { code: 0, signal: null },
    finalRung: 'none',
    refusals: { trifecta: 0, rate: 0, budget: 0, depth: 0, mcp: 0 },
    traceId: null,
    durationMs: 1,
    ...over,
  };
}
