import { ulid } from 'ulid';
import type { ChildSupervisor } from './children/child-supervisor.ts';
import type { RunOutcome } from './children/run.ts';
import type { Host } from './cli/host.ts';
import type { ConfigInForce } from './config/in-force.ts';
import type { LoadedConfig } from './config/load.ts';
import { Intelligence } from './intelligence/intelligence.ts';
import { applyReload } from './lifecycle/apply-reload.ts';
import { Drain } from './lifecycle/drain.ts';
import { drainActions } from './lifecycle/drain-actions.ts';
import { processInstance } from './lifecycle/instance.ts';
import type { Management } from './lifecycle/manage.ts';
import { connections } from './lifecycle/open-connections.ts';
import { openTraces } from './lifecycle/open-traces.ts';
import { Reload } from './lifecycle/reload.ts';
import { type StartedTriggers, startTriggers } from './lifecycle/start-triggers.ts';
import type { Service } from './lifecycle/systemd-service.ts';
import { TokenBudget } from './lifecycle/token-budget.ts';
import { systemClock } from './reactor/clock.ts';
import type { SupervisorEvent } from './reactor/event.ts';
import { Reactor } from './reactor/reactor.ts';
import { Supervisor } from './reactor/supervisor.ts';
import { Timers } from './reactor/timers.ts';
import { type Health, startHealth } from './surface/health.ts';
import { publishCgroupMemory } from './telemetry/cgroup-memory.ts';
import type { EventRing } from './telemetry/event-ring.ts';
import type { LogSink } from './telemetry/logger.ts';
import type { Metrics } from './telemetry/metrics.ts';
import { newTraceparent } from './telemetry/trace.ts';
import { buildWork } from './work.ts';

/** Everything one supervisor is made of, wired up. */
export interface Parts {
  readonly supervisor: Supervisor;
  /** URL of the management surface, or null. */
  readonly management: string | null;
  readonly children: ChildSupervisor;
  readonly drain: Drain;
  readonly health: Health;
  readonly timers: Timers;
  readonly post: (event: SupervisorEvent) => void;
  /** Connects to the MCP servers and subscribes. @throws AgentdError exit 6 or 2 */
  connect(): Promise<void>;
  /** Starts what runs without an event: the root run, the clock. */
  startTriggers(): Promise<void>;
  close(budgetMs: number): Promise<void>;
}

export interface PartsInput {
  readonly settings: ConfigInForce;
  /** Reads the configuration again, as it was read at the start. */
  readonly load: () => Promise<LoadedConfig>;
  /** A reload read these files. */
  readonly read: (files: readonly string[]) => void;
  readonly service: Service;
  readonly host: Host;
  readonly log: LogSink;
  readonly metrics: Metrics;
  /** The run id of this process, and of its first root run. */
  readonly runId: string;
  /** The latest log lines, for `agent://events`. */
  readonly ring: EventRing;
  /** The trace this process belongs to. */
  readonly traceparent: string;
  /** A finished root run, for its result and report. */
  readonly finished: (outcome: RunOutcome, startedAt: number) => void;
}

/**
 * Builds one supervisor. Warm children start at once, so that they are ready when connections are.
 *
 * @throws AgentdError ADDRESS_IN_USE (exit 2)
 */
export async function buildParts(input: PartsInput): Promise<Parts> {
  const { host, log, metrics, settings } = input;
  const config = settings.current();
  const clock = systemClock;
  const timers = new Timers(clock);
  const random = Math.random;
  const instance = processInstance(config.identity.instance);
  const { current } = settings;
  const budget = new TokenBudget(() => current().limits.budgetTokensLifetime);

  const reactor: Reactor<SupervisorEvent> = new Reactor(
    (event) => supervisor.handle(event),
    () => supervisor.afterBatch(),
    () => health.beat(),
  );
  const post = (event: SupervisorEvent): void => reactor.post(event);

  const render = (): Promise<string> => {
    supervisor.publishGauges();
    publishCgroupMemory(metrics);
    return metrics.render();
  };
  const healthThread = await startHealth({
    metricsAddr: config.observability.metricsAddr,
    healthFile: config.observability.healthFile,
    renderMetrics: render,
    onStall: () => metrics.add('agent_reactor_stalls_total'),
    log,
  });
  const health = input.service.over(healthThread);
  const intelligence = new Intelligence(current, clock, log, metrics, () => supervisor.publishReadiness());
  const traces = await openTraces(config, host.env, clock, log);
  const links = await connections({ config, clock, log, metrics, instance, emit: post, traces });

  const work = buildWork({
    config,
    current,
    clock,
    timers,
    random,
    log,
    metrics,
    post,
    links,
    intelligence,
    traces,
    budget,
    env: host.env,
    runId: input.runId,
    traceparent: input.traceparent,
    supervisor: () => supervisor,
    subagentChanged: (handle) => management?.subagentChanged(handle),
    finished: input.finished,
  });
  const { children, keeper, intake, reactions, sessions } = work;

  let triggers: StartedTriggers | null = null;
  const drain = new Drain({
    clock,
    log,
    metrics,
    drainTimeoutMs: config.lifecycle.drainTimeoutMs,
    stepDone: (step) => post({ type: 'drain.step_done', step }),
    actions: drainActions({
      children,
      keeper,
      links,
      timers,
      traces,
      triggers: () => triggers,
      log,
      drainTimeoutMs: config.lifecycle.drainTimeoutMs,
    }),
  });

  const targets = { settings, log, clock, children, intelligence, links, intake, reactions, sessions };
  const reload = new Reload({
    load: input.load,
    settings,
    prepare: links.prepare,
    apply: (to, changes, prepared) => applyReload(targets, to, changes, prepared),
    onReactor: (act) => post({ type: 'operator', act }),
    draining: () => drain.phase !== 'running',
    read: input.read,
    ended: () => management?.reloaded(),
    service: input.service,
    clock,
    log,
    metrics,
  });

  const supervisor = new Supervisor({
    settings,
    clock,
    timers,
    log,
    metrics,
    ...work,
    drain,
    budget,
    post,
    intelligence,
    runEnded: (outcome) => {
      links.forget(outcome.runId);
      management?.runEnded(outcome);
    },
    reload: () => reload.request(),
    ticked: () => {
      links.sweep((runId) => reactions.owns(runId) || children.runs.some((run) => run.rootRunId === runId));
      management?.stateChanged();
    },
    publish: (readiness) => {
      health.setReadiness(readiness);
      management?.stateChanged();
    },
  });

  let management: Management | null = null;
  if (config.serve !== null) {
    const { manage } = await import('./lifecycle/manage.ts');
    management = await manage({
      serve: config.serve,
      log,
      env: host.env,
      metricsUrl: health.url,
      settings,
      runId: input.runId,
      startedAt: clock.wall(),
      supervisor,
      ...work,
      intelligence,
      links,
      metrics,
      render,
      ring: input.ring,
      post,
      newRunId: ulid,
      traceparent: newTraceparent,
    });
  }

  return {
    supervisor,
    management: management?.url ?? null,
    children,
    drain,
    health,
    timers,
    post,
    connect: links.start,
    startTriggers: async () => {
      triggers = await startTriggers({ config, clock, timers, log, post });
      reload.started();
    },
    close: async (budgetMs) => {
      await Promise.all([links.close(budgetMs), health.close(budgetMs), management?.close(budgetMs)]);
    },
  };
}
