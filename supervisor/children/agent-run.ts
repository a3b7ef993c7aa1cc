import { NO_USAGE, type RunResult, type Usage } from '../../protocol/frames.ts';
import type { Log } from '../telemetry/log.ts';
import { NO_REFUSALS, type Refusals } from '../telemetry/run-reports.ts';
import { spanIdOf, traceIdOf } from '../telemetry/trace.ts';
import type { Rung } from './kill-ladder.ts';
import type { RunOutcome, RunSpec, StopCause } from './run.ts';
import type { ChildSettings, ModelChoice } from './supervisor-options.ts';

/** Where a run stands in the tree of agents. Minted by the supervisor, never by a child. */
export interface AgentPlace {
  readonly agentId: string;
  /** "0", "0.2", "0.2.1": also the handle subagents are addressed by. */
  readonly path: string;
  readonly depth: number;
  /** Path of the agent that asked for it; null for what the engine launched. */
  readonly parent: string | null;
  /** Run id of the root: what the work is claimed under, also for its subagents. */
  readonly rootRunId: string;
}

/** One run from its launch to its outcome. */
export class AgentRun {
  readonly agentId: string;
  readonly path: string;
  readonly depth: number;
  readonly parent: string | null;
  readonly rootRunId: string;
  readonly log: Log;
  /** As last reported by the child. */
  usage: Usage = NO_USAGE;
  /** The first result; what arrives after a stop only completes the report. */
  result: RunResult | null = null;
  /** When the run frame was written, monotonic ms; null while it waits for a child. */
  startedAt: number | null = null;
  /** Wanted by an operator, apart from what the child has reported. */
  pauseWanted = false;
  subagentsStarted = 0;
  /** What policy refused it and the agents below it. */
  readonly refusals: Record<keyof Refusals, number> = { ...NO_REFUSALS };
  /** Of the trace the run belongs to; null where its traceparent is no valid one. */
  readonly traceId: string | null;
  /** Its loop has reported its start. */
  begun = false;
  /** Longest it may show no progress, ms; null: the default of its child. */
  noProgressMs: number | null = null;
  /** Resident memory its child may use, bytes; null: unbounded. */
  memoryMaxBytes: number | null = null;
  /** The model asked for; null: the endpoint's own choice, or no child yet. */
  model: string | null = null;
  /** For each endpoint the child was given: its place in the configuration. */
  endpoints: readonly number[] = [];
  /** Wakes of a session that has no child yet. */
  readonly earlyWakes: { readonly uris: readonly string[]; readonly messages: readonly string[] }[] = [];

  constructor(
    readonly spec: RunSpec,
    place: AgentPlace,
    readonly launchedAt: number,
    log: Log,
  ) {
    this.agentId = place.agentId;
    this.path = place.path;
    this.depth = place.depth;
    this.parent = place.parent;
    this.rootRunId = place.rootRunId;
    this.traceId = traceIdOf(spec.traceparent);
    const spanId = spanIdOf(spec.traceparent);
    this.log = log.as({
      runId: spec.runId,
      agentId: place.agentId,
      agentPath: place.path,
      comp: 'agent',
      ...(this.traceId === null ? {} : { traceId: this.traceId }),
      ...(spanId === null ? {} : { spanId }),
    });
  }

  /** Takes on what holds for runs that begin now, whatever is configured later. */
  equip(model: ModelChoice, limits: ChildSettings['limits'], noProgressMs: number): void {
    this.endpoints = model.configured;
    this.model = model.block.model ?? null;
    this.noProgressMs = noProgressMs;
    this.memoryMaxBytes = limits.childMemoryMaxBytes;
  }
}

/** How the process of a run ended. */
export interface RunEnd {
  readonly cause: StopCause | null;
  readonly exit: RunOutcome['exit'];
  readonly rung: Rung;
  /** What to say where the child left no result. */
  readonly error: { readonly type: string; readonly message: string } | null;
}

const STATUS_OF_CAUSE: Readonly<Record<StopCause, RunOutcome['status']>> = {
  cancelled: 'cancelled',
  drain: 'cancelled',
  deadline: 'deadline',
  no_progress: 'stalled',
  wedged: 'stalled',
  memory: 'crashed',
  lease_lost: 'cancelled',
  lease_expired: 'cancelled',
  parent_ended: 'cancelled',
  tree_tokens: 'exhausted_tokens',
  spawn_failed: 'crashed',
  not_ready: 'crashed',
  protocol: 'crashed',
  vanished: 'crashed',
  forced: 'cancelled',
};

/**
 * The outcome of a run. The first cause wins: a result that was sent after the run was stopped adds
 * its text and usage, and changes nothing else. Without cause and without result it is `crashed`,
 * whatever the exit code.
 */
export function outcomeOf(run: AgentRun, end: RunEnd, now: number): RunOutcome {
  const { result } = run;
  const cause = end.cause ?? (result === null ? 'vanished' : null);
  const ended = cause === null && result !== null ? result.status : STATUS_OF_CAUSE[cause ?? 'vanished'];
  return {
    runId: run.spec.runId,
    agentPath: run.path,
    route: run.spec.route,
    status: ended,
    cause,
    result: result?.result ?? '',
    hasUsablePartial: result?.has_usable_partial ?? false,
    usage: result?.usage ?? run.usage,
    error: cause === null ? (result?.error ?? null) : (end.error ?? result?.error ?? null),
    intelligenceFailed: result?.intelligence_failed ?? false,
    exit: end.exit,
    finalRung: end.rung,
    refusals: { ...run.refusals },
    traceId: run.traceId,
    durationMs: now - (run.startedAt ?? run.launchedAt),
  };
}
