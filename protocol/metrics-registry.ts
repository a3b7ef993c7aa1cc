import { TERMINAL_STATUSES } from './terminal-status.ts';

/**
 * The metrics of the contract (section 4, metrics_schema "1.2") as data. The exporter, the
 * documentation, the dashboard test and the scrape test all read this table; nothing else may
 * name a series.
 */

export interface MetricLabel {
  readonly name: string;
  /** The closed set of values; anything else folds into `other`. */
  readonly values?: readonly string[];
  /** For open sets: how many distinct values are kept before the rest fold into `other`. */
  readonly max?: number;
}

export interface MetricSpec<Name extends string = string> {
  readonly name: Name;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly MetricLabel[];
  /** Upper bounds of a histogram, in the unit of the metric. */
  readonly buckets?: readonly number[];
  /** Absent until it is set: the platform or the configuration may not offer the figure. */
  readonly optional?: true;
}

const RUN_BUCKETS = [
  50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000,
];
const CALL_BUCKETS = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000];

const STATUS: MetricLabel = { name: 'status', values: TERMINAL_STATUSES };
const MODEL: MetricLabel = { name: 'model', max: 16 };
const SERVER: MetricLabel = { name: 'server', max: 16 };
const TOOL: MetricLabel = { name: 'tool', max: 64 };

const gauge = <N extends string>(
  name: N,
  help: string,
  labels: readonly MetricLabel[] = [],
): MetricSpec<N> => ({
  name,
  type: 'gauge',
  help,
  labels,
});
const counter = <N extends string>(
  name: N,
  help: string,
  labels: readonly MetricLabel[] = [],
): MetricSpec<N> => ({
  name,
  type: 'counter',
  help,
  labels,
});
const histogram = <N extends string>(
  name: N,
  help: string,
  labels: readonly MetricLabel[],
  buckets: readonly number[],
): MetricSpec<N> => ({ name, type: 'histogram', help, labels, buckets });
const reason = (...values: string[]): MetricLabel => ({ name: 'reason', values });

export const METRICS = [
  gauge('agent_up', '1 while the supervisor runs.'),
  gauge('agent_ready', '1 while the instance is ready for work.'),
  gauge('agent_paused', '1 while the instance is paused.'),
  gauge('agent_draining', '1 from the start of a drain.'),
  gauge('agent_lame_duck', '1 while the instance takes no new work but stays up.'),
  counter('agent_runs_total', 'Runs finished, by terminal status.', [STATUS]),
  counter('agent_runs_started_total', 'Runs started.'),
  histogram('agent_run_duration_ms', 'Duration of runs, milliseconds.', [STATUS], RUN_BUCKETS),
  counter('agent_loop_steps_total', 'Agent loop steps over the whole tree.'),
  counter('agent_tokens_total', 'Tokens used, as reported by the model endpoint.', [
    MODEL,
    { name: 'type', values: ['in', 'out'] },
  ]),
  counter('agent_intel_calls_total', 'Model calls.', [MODEL]),
  histogram('agent_intel_call_duration_ms', 'Duration of model calls, milliseconds.', [MODEL], CALL_BUCKETS),
  gauge('agent_intel_up', '1 while at least one model endpoint is usable.'),
  gauge('agent_intel_all_down', '1 while no model endpoint is usable.'),
  counter('agent_intel_errors_total', 'Failed model calls.', [
    reason('unreachable', 'auth', 'timeout', '5xx'),
  ]),
  gauge('agent_tokens_per_sec', 'Tokens per second over the last minute.'),
  gauge('agent_intelligence_latency_ms', 'Latency of recent model calls, milliseconds.', [
    { name: 'quantile', values: ['p50', 'p95'] },
  ]),
  counter('agent_refusals_total', 'Requests refused by policy.', [
    reason('trifecta', 'rate', 'budget', 'depth', 'mcp'),
  ]),
  counter('agent_limit_exceeded_total', 'Limits that ended or refused something.', [
    {
      name: 'limit',
      values: [
        'steps',
        'tokens',
        'tokens_lifetime',
        'deadline',
        'depth',
        'tree_tokens',
        'restart_storm',
        'spawn_rate',
        'memory',
      ],
    },
  ]),
  { ...gauge('agent_budget_tokens_remaining', 'Tokens left in the lifetime budget.'), optional: true },
  gauge('agent_active_subagents', 'Subagents running now.'),
  gauge('agent_tree_depth', 'Depth of the deepest running subagent.'),
  gauge('agent_tree_breadth', 'Largest number of children under one node.'),
  counter('agent_subagents_spawned_total', 'Subagents started.'),
  counter('agent_subagents_exited_total', 'Subagents ended, by terminal status.', [STATUS]),
  counter('agent_subagent_restarts_total', 'Subagents restarted.', [reason('crashed', 'stuck', 'rate')]),
  counter('agent_restarts_tripped_total', 'Times a restart breaker opened.'),
  counter('agent_subagent_stuck_kills_total', 'Stuck subagents killed, by the signal that ended them.', [
    { name: 'signal', values: ['term', 'kill'] },
  ]),
  gauge('agent_mcp_up', '1 while the connection to an MCP server is live.', [SERVER]),
  counter('agent_mcp_connect_failures_total', 'Failed connection attempts to MCP servers.', [SERVER]),
  counter('agent_tool_calls_total', 'Tool calls made for subagents.', [
    SERVER,
    TOOL,
    { name: 'ok', values: ['true', 'false'] },
  ]),
  histogram(
    'agent_tool_call_duration_ms',
    'Duration of tool calls, milliseconds.',
    [SERVER, TOOL],
    CALL_BUCKETS,
  ),
  counter('agent_drains_total', 'Drains, by phase reached.', [
    { name: 'phase', values: ['started', 'completed', 'forced'] },
  ]),
  counter('agent_restarts_total', 'Restarts of this instance seen, from the stored generation.'),
  counter('agent_reactor_stalls_total', 'Times the reactor was blocked past the heartbeat limit.'),
  counter('agent_config_reload_total', 'Configuration reloads.', [
    { name: 'result', values: ['applied', 'rejected'] },
  ]),
  gauge('agent_config_generation', 'Generation of the configuration in force.'),
  gauge('agent_pending_events', 'Events routed, queued or offered but not yet running.'),
  gauge('agent_reactive_backlog', 'Alias of agent_pending_events.'),
  gauge('agent_inflight_reactions', 'Reactions running now.'),
  gauge('agent_subscriptions_active', 'Resource subscriptions in force.'),
  gauge('agent_reaction_lag_ms', 'Age of the oldest waiting event, milliseconds.'),
  gauge('agent_saturation', 'In-flight reactions over capacity, 0 to 1.'),
  counter('agent_shard_skipped_total', 'Events that belong to another shard.'),
  counter('agent_claims_granted_total', 'Claims granted.'),
  counter(
    'agent_claims_lost_total',
    'Claims not granted: somebody else holds the item, or it is done already.',
  ),
  counter('agent_claims_released_total', 'Leases released.'),
  counter('agent_claims_expired_total', 'Leases expired or lost while held.'),
  counter('agent_reactions_total', 'Reactions started.'),
  counter('agent_unrouted_events_total', 'Events no route matches.'),
  counter('agent_coalesced_events_total', 'Events merged into one already waiting.'),
  counter('agent_dropped_events_total', 'Events dropped by an overflow policy or a broken session.'),
  { ...gauge('agent_memory_max_bytes', 'Memory limit of the cgroup, bytes.'), optional: true },
  { ...gauge('agent_memory_current_bytes', 'Memory used by the cgroup, bytes.'), optional: true },
  counter('agent_log_lines_dropped_total', 'Log lines dropped because the reader was too slow.'),
] as const satisfies readonly MetricSpec[];

/** The value every unknown label value folds into. */
export const OTHER = 'other';
