import { NO_USAGE, type RunResult } from '../../protocol/frames.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { AgentRun } from './agent-run.ts';
import type { RunOutcome } from './run.ts';
import type { ChildSupervisorOptions } from './supervisor-options.ts';

/** The limit an outcome ran into, as a label of `agent_limit_exceeded_total`; null: none. */
export function limitOf(outcome: Pick<RunOutcome, 'status' | 'cause'>): string | null {
  if (outcome.cause === 'memory') return 'memory';
  if (outcome.cause === 'tree_tokens') return 'tree_tokens';
  switch (outcome.status) {
    case 'exhausted_steps':
      return 'steps';
    case 'exhausted_tokens':
      return 'tokens';
    case 'deadline':
      return 'deadline';
    default:
      return null;
  }
}

/** Writes down how a run ended: one line, and the figures. */
export function recordSettlement(run: AgentRun, outcome: RunOutcome, log: Log, metrics: Metrics): void {
  metrics.add('agent_subagents_exited_total', { status: outcome.status });
  const limit = limitOf(outcome);
  if (limit !== null) {
    metrics.add('agent_limit_exceeded_total', { limit });
    log.warn('limit.exceeded', { limit, status: outcome.status });
  }
  if (outcome.cause === 'no_progress' || outcome.cause === 'wedged') {
    const { finalRung } = outcome;
    const signal = finalRung === 'term' || finalRung === 'kill' ? finalRung : 'other';
    metrics.add('agent_subagent_stuck_kills_total', { signal });
  }
  const bad = outcome.status === 'crashed' || outcome.status === 'stalled';
  log.write(bad ? 'warn' : 'info', 'subagent.exit', {
    status: outcome.status,
    cause: outcome.cause,
    route: run.spec.route,
    exit_code: outcome.exit?.code ?? null,
    signal: outcome.exit?.signal ?? null,
    final_rung: outcome.finalRung,
    dur_ms: outcome.durationMs,
    steps: outcome.usage.steps,
    tokens_in: outcome.usage.tokens_in,
    tokens_out: outcome.usage.tokens_out,
    ...(outcome.error === null ? {} : { err: outcome.error }),
  });
}

/** Writes down that a warm child died, and whether another one may be started. */
export function recordWarmDeath(
  reason: 'crashed' | 'stuck',
  verdict: 'retry' | 'tripped',
  log: Log,
  metrics: Metrics,
): void {
  metrics.add('agent_subagent_restarts_total', { reason });
  log.warn('subagent.restart', { reason, msg: 'a warm child died; another is started after a backoff' });
  if (verdict === 'retry') return;
  metrics.add('agent_restarts_tripped_total');
  metrics.add('agent_limit_exceeded_total', { limit: 'restart_storm' });
  log.error('limit.exceeded', {
    limit: 'restart_storm',
    msg: 'warm children keep dying once they are ready: none is started until the breaker lets one through',
  });
}

/** Tells that no child can be started any more, or that they can again (`problem` null). */
export function recordStartability(
  problem: string | null,
  { log, metrics, emit }: Pick<ChildSupervisorOptions, 'log' | 'metrics' | 'emit'>,
): void {
  emit({ type: 'starting', possible: problem === null });
  if (problem === null) {
    log.info('subagent.restart', {
      msg: 'a child came up: children can be started again, and work is taken',
    });
    return;
  }
  metrics.add('agent_restarts_tripped_total');
  metrics.add('agent_limit_exceeded_total', { limit: 'restart_storm' });
  log.error('limit.exceeded', {
    limit: 'restart_storm',
    msg: `no child can be started (${problem}): nothing is claimed or started until a probe comes up`,
  });
}

/** The result of a run that policy forbids to start. */
export function refusedResult(runId: string, message: string): RunResult {
  return {
    run_id: runId,
    status: 'refused',
    result: '',
    has_usable_partial: false,
    usage: NO_USAGE,
    error: { type: 'RuleOfTwo', message },
  };
}
