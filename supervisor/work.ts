import { ulid } from 'ulid';
import { childCommand } from './children/child-command.ts';
import { ChildSupervisor } from './children/child-supervisor.ts';
import { ruleOfTwo } from './children/rule-of-two.ts';
import type { RunOutcome } from './children/run.ts';
import type { Config } from './config/config.ts';
import { LeaseKeeper } from './gates/lease-keeper.ts';
import type { Intelligence } from './intelligence/intelligence.ts';
import { childSettings, warmTarget } from './lifecycle/apply-reload.ts';
import type { Connections } from './lifecycle/connections.ts';
import { Governed } from './lifecycle/governed.ts';
import type { openTraces } from './lifecycle/open-traces.ts';
import { RootRuns } from './lifecycle/root-runs.ts';
import { RunFactory } from './lifecycle/run-factory.ts';
import { standbyMember, withStandbyRoute } from './lifecycle/standby-member.ts';
import type { TokenBudget } from './lifecycle/token-budget.ts';
import type { Clock } from './reactor/clock.ts';
import type { SupervisorEvent } from './reactor/event.ts';
import type { Supervisor } from './reactor/supervisor.ts';
import type { Timers } from './reactor/timers.ts';
import { Intake } from './routing/intake.ts';
import { Reactions } from './routing/reactions.ts';
import { SessionClaims } from './routing/session-claims.ts';
import { Sessions } from './routing/sessions.ts';
import { type Looked, ShardLookup } from './routing/shard-lookup.ts';
import type { Standby } from './routing/standby.ts';
import type { Log } from './telemetry/log.ts';
import type { Metrics } from './telemetry/metrics.ts';
import { childTraceparent, newTraceparent, parseTraceparent } from './telemetry/trace.ts';

/** What the work is built on. */
export interface WorkInput {
  readonly config: Config;
  /** The configuration in force, which a reload may change. */
  readonly current: () => Config;
  readonly clock: Clock;
  readonly timers: Timers;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly post: (event: SupervisorEvent) => void;
  readonly links: Connections;
  readonly intelligence: Intelligence;
  readonly traces: Awaited<ReturnType<typeof openTraces>>;
  readonly budget: TokenBudget;
  readonly env: NodeJS.ProcessEnv;
  readonly runId: string;
  readonly traceparent: string;
  readonly supervisor: () => Supervisor;
  readonly subagentChanged: (handle: string) => void;
  readonly finished: (outcome: RunOutcome, startedAt: number) => void;
}

/** The path of an update, from its lane to its child and back. */
export interface Work {
  readonly intake: Intake;
  readonly children: ChildSupervisor;
  readonly keeper: LeaseKeeper;
  readonly factory: RunFactory;
  readonly reactions: Reactions;
  readonly sessions: Sessions;
  readonly rootRuns: RootRuns;
  readonly standby: Standby | null;
}

/** Builds what takes updates and ticks to children. Warm children start at once. */
export function buildWork(input: WorkInput): Work {
  const { config, current, clock, timers, random, log, metrics, post, links } = input;
  const { intelligence, traces, budget, supervisor } = input;
  const found = (looked: Looked): void => post({ type: 'shard.looked', ...looked });
  const looks = new ShardLookup({ clock, timers, describe: links.describe, found, log, metrics, random });
  const intake = new Intake(withStandbyRoute(config), log, metrics, () => supervisor().watched, looks);
  const tagsOf = (server: string): readonly string[] =>
    current().mcpServers.find(({ name }) => name === server)?.tags ?? [];
  const children = new ChildSupervisor({
    clock,
    log,
    metrics,
    command: childCommand(config.observability.inspectChild),
    inspect: config.observability.inspectChild,
    env: input.env,
    ...childSettings(config),
    callTool: links.callTool,
    model: () => intelligence.choose(),
    heldModel: () => intelligence.held(),
    modelCall: (call, run) => {
      intelligence.record(call);
      traces?.modelCall(run, call);
    },
    settled: (run, outcome) => traces?.run(run, outcome),
    emit: post,
    random,
    cgroup: config.cgroup,
    forbidden: (tools) => (config.allowTrifecta ? null : ruleOfTwo(tools, tagsOf)),
    subagentChanged: (handle) => input.subagentChanged(handle),
  });
  children.setWarmTarget(warmTarget(config, intake));

  const keeper = new LeaseKeeper({ clock, timers, calls: links.calls, log, metrics, post, random });
  const factory = new RunFactory(current, links.tools);

  const reactions = new Reactions(intake, {
    clock,
    timers,
    children,
    keeper,
    log,
    metrics,
    post,
    random,
    newRunId: ulid,
    traceparent: newTraceparent,
    spec: (lane, run) => factory.reaction(lane.route.config, run),
    describe: links.describe,
    gate: () => supervisor().gate(),
    maxTotal: () => current().limits.maxTotalSubagents,
  });
  const sessions = new Sessions(intake, {
    clock,
    children,
    log,
    metrics,
    newRunId: ulid,
    claims: new SessionClaims(keeper, newTraceparent),
    revisit: (server, uri, at) =>
      timers.set(`revisit:${server}:${uri}`, at, () => post({ type: 'revisit', server, uri })),
    random,
    newGovernor: () => new Governed(random),
    spec: (lane, _session, runId) => factory.session(lane.route.config, runId, newTraceparent()),
    mayStart: () => supervisor().mayStart(),
  });
  // A root run continues the trace we were started in; each reaction begins one of its own.
  const wasGiven = config.traceparent !== null && parseTraceparent(config.traceparent) !== null;
  const rootRuns = new RootRuns({
    config: { ...config, runId: input.runId },
    clock,
    timers,
    children,
    log,
    metrics,
    governor: new Governed(random),
    newRunId: ulid,
    spec: (runId) => ({
      ...factory.root(runId, childTraceparent(input.traceparent)),
      ...(wasGiven ? { parentTraceparent: input.traceparent } : {}),
    }),
    mayStart: () => supervisor().mayLaunch(),
    budgetRemaining: () => budget.remaining,
    due: () => post({ type: 'root.due' }),
    finish: (exitCode) => supervisor().finish(exitCode, 'finished'),
    finished: input.finished,
  });

  const standby = standbyMember({
    config,
    clock,
    log,
    links,
    intake,
    reactions,
    supervisor,
    post,
  });

  return { intake, children, keeper, factory, reactions, sessions, rootRuns, standby };
}
