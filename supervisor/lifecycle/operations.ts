import { AgentdError } from '../../protocol/errors.ts';
import type {
  CapacityDocument,
  InventoryDocument,
  OperatorResult,
  SessionDocument,
  StatusDocument,
  SubagentDocument,
} from '../../protocol/management.ts';
import { AGENT_VERSION } from '../../protocol/versions.ts';
import type { ChildSupervisor } from '../children/child-supervisor.ts';
import type { RunOutcome } from '../children/run.ts';
import { effectiveConfig } from '../config/effective.ts';
import type { ConfigInForce } from '../config/in-force.ts';
import { buildManifest } from '../config/manifest.ts';
import { shardLabel } from '../config/shard.ts';
import type { Intelligence } from '../intelligence/intelligence.ts';
import type { SupervisorEvent } from '../reactor/event.ts';
import { saturationOf } from '../reactor/figures.ts';
import type { Supervisor } from '../reactor/supervisor.ts';
import type { Intake } from '../routing/intake.ts';
import type { Reactions } from '../routing/reactions.ts';
import type { Sessions } from '../routing/sessions.ts';
import type { ManagementPort } from '../surface/management-port.ts';
import type { EventRing } from '../telemetry/event-ring.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { OwnUsage } from '../telemetry/own-usage.ts';
import type { RecentReports } from '../telemetry/reports.ts';
import { type Connections, unknownServer } from './connections.ts';
import type { RunFactory } from './run-factory.ts';
import { describeOutcome, describeRun, describeSession } from './subagent-documents.ts';

export interface OperationsDeps {
  readonly settings: ConfigInForce;
  readonly runId: string;
  readonly startedAt: number;
  readonly supervisor: Supervisor;
  readonly children: ChildSupervisor;
  readonly intake: Intake;
  readonly reactions: Reactions;
  readonly sessions: Sessions;
  readonly intelligence: Intelligence;
  readonly links: Connections;
  readonly factory: RunFactory;
  readonly metrics: Metrics;
  readonly render: () => Promise<string>;
  readonly ring: EventRing;
  readonly reports: RecentReports;
  readonly post: (event: SupervisorEvent) => void;
  readonly newRunId: () => string;
  readonly traceparent: () => string;
  /** What is served: the management URL and the metrics address, known once they listen. */
  readonly served: () => { readonly management: string | false; readonly metrics: string | false };
}

/** Ended runs whose outcome can still be asked for by handle. */
const KEPT_OUTCOMES = 256;

/** What operators see and do: reads answer from memory, commands are taken by the reactor. */
export class Operations implements ManagementPort {
  private readonly outcomes = new Map<string, RunOutcome>();
  private readonly usage = new OwnUsage();

  constructor(private readonly deps: OperationsDeps) {}

  /** A run the engine launched is over; subagents are kept by their own book. */
  ended(outcome: RunOutcome): void {
    this.outcomes.set(outcome.agentPath, outcome);
    if (this.outcomes.size <= KEPT_OUTCOMES) return;
    const [oldest] = this.outcomes.keys();
    if (oldest !== undefined) this.outcomes.delete(oldest);
  }

  capabilities(): ReturnType<ManagementPort['capabilities']> {
    const { settings, runId, intelligence, served } = this.deps;
    return buildManifest(settings.current(), {
      runId,
      agentVersion: AGENT_VERSION,
      intelligenceHealthy: intelligence.healthy,
      ...served(),
    });
  }

  status(): StatusDocument {
    const { settings, runId, supervisor, startedAt } = this.deps;
    const config = settings.current();
    const { pending, inflight } = supervisor.figures();
    return {
      instance: config.identity.instance,
      run_id: runId,
      mode: config.mode,
      shard: shardLabel(config.shard),
      ...supervisor.standing,
      ready: supervisor.readiness.ready,
      reasons: [...supervisor.readiness.reasons],
      started_at: new Date(startedAt).toISOString(),
      uptime_ms: Math.max(0, Date.now() - startedAt),
      config_generation: settings.generation,
      last_reload: settings.lastReload === null ? null : { ...settings.lastReload },
      active_subagents: this.deps.children.active,
      pending_events: pending,
      inflight_reactions: inflight,
      budget_tokens_remaining: supervisor.gate().budgetRemaining,
      process: { ...this.usage.read() },
    };
  }

  inventory(): InventoryDocument {
    const { children, sessions, intake, links, supervisor } = this.deps;
    // Both in the order of the book, within one tick.
    const views = children.inventory();
    return {
      subagents: children.runs.map((run, at) => describeRun(run, views[at])),
      sessions: sessions.list().map(describeSession),
      routes: intake.lanes.map(({ route, queue }) => ({
        name: route.config.name,
        match: route.config.match,
        claim: route.config.claim !== null,
        inflight: queue.inflight,
      })),
      mcp_servers: links.peers().map(({ name, state, toolNames, tags }) => ({
        name,
        state,
        tools: toolNames.length,
        tags: [...tags],
      })),
      subscriptions_active: supervisor.watched,
    };
  }

  capacity(): CapacityDocument {
    const { settings, children, supervisor, intelligence } = this.deps;
    const config = settings.current();
    const figures = supervisor.figures();
    const { capacity, inflight, pendingClaims } = figures;
    const takesWork = supervisor.mayLaunch();
    return {
      instance: config.identity.instance,
      shard: shardLabel(config.shard),
      standby: config.standby !== null,
      free_slots: takesWork ? Math.max(0, capacity - inflight - pendingClaims) : 0,
      active_subagents: children.active,
      warm_children: children.warm,
      max_total_subagents: config.limits.maxTotalSubagents,
      saturation: saturationOf(figures),
      intelligence: { warm: children.holdsModel, healthy: intelligence.healthy },
    };
  }

  intelligence(): Readonly<Record<string, unknown>> {
    return { ...this.deps.intelligence.snapshot() };
  }

  metrics(): Promise<string> {
    return this.deps.render();
  }

  events(query: Parameters<ManagementPort['events']>[0]): ReturnType<ManagementPort['events']> {
    return this.deps.settings.current().observability.serveEvents ? this.deps.ring.read(query) : null;
  }

  effectiveConfig(): Readonly<Record<string, unknown>> {
    const { current, generation, lastReload } = this.deps.settings;
    return { ...effectiveConfig(current()), generation, last_reload: lastReload };
  }

  run(runId: string): ReturnType<ManagementPort['run']> {
    return this.deps.reports.get(runId) ?? null;
  }

  session(id: string): SessionDocument | null {
    const found = this.deps.sessions.list().find(({ session }) => session === id);
    return found === undefined ? null : describeSession(found);
  }

  subagent(handle: string): SubagentDocument | null {
    const { children } = this.deps;
    const live = children.runs.find(({ path }) => path === handle);
    const seen = children.inventory().find(({ path }) => path === handle);
    if (live !== undefined) return describeRun(live, seen);
    const kept = this.outcomes.get(handle);
    if (kept !== undefined) return describeOutcome(kept);
    const view = children.subagents.view(handle);
    return view === null ? null : { ...view, run_id: '', route: null };
  }

  result(handle: string): ReturnType<ManagementPort['result']> {
    const kept = this.outcomes.get(handle);
    if (kept !== undefined) {
      const { runId, status, result, hasUsablePartial } = kept;
      return { handle, run_id: runId, status, result, has_usable_partial: hasUsablePartial };
    }
    const view = this.deps.children.subagents.view(handle);
    const result = this.deps.children.subagents.result(handle);
    if (view === null || result === null || view.status === 'running') return null;
    return { handle, run_id: '', status: view.status, result, has_usable_partial: view.has_usable_partial };
  }

  drain(deadlineMs: number | null): Promise<OperatorResult> {
    return this.command(() => {
      const budget = deadlineMs === null ? {} : { budgetMs: deadlineMs };
      this.deps.supervisor.handle({ type: 'drain.request', cause: 'operator', ...budget });
    });
  }

  lameDuck(on: boolean): Promise<OperatorResult> {
    return this.command(() => this.deps.supervisor.setLameDuck(on));
  }

  pause(): Promise<OperatorResult> {
    return this.command(() => this.deps.supervisor.setPaused(true));
  }

  resume(): Promise<OperatorResult> {
    return this.command(() => this.deps.supervisor.setPaused(false));
  }

  async cancel(handle: string): Promise<boolean> {
    return this.inReactor(() => this.deps.children.cancel(handle));
  }

  spawn(request: Parameters<ManagementPort['spawn']>[0]): ReturnType<ManagementPort['spawn']> {
    return this.inReactor(() => {
      const { supervisor, children, factory, newRunId, traceparent } = this.deps;
      if (
        !supervisor.mayLaunch() ||
        children.active >= this.deps.settings.current().limits.maxTotalSubagents
      ) {
        throw new AgentdError('NO_FREE_SLOT', 'no subagent can be started now');
      }
      const runId = newRunId();
      children.launch(factory.operator(request, runId, traceparent()));
      const run = children.runs.find(({ spec }) => spec.runId === runId);
      if (run === undefined) throw new AgentdError('NO_FREE_SLOT', 'the subagent was refused at its start');
      return { handle: run.path, runId };
    });
  }

  send(handle: string, message: string): Promise<void> {
    return this.inReactor(() => {
      const run = this.deps.children.runs.find(({ path }) => path === handle);
      if (run === undefined || run.spec.kind !== 'session') {
        throw new AgentdError('SUBAGENT_UNKNOWN', `there is no warm session with the handle ${handle}`);
      }
      this.deps.children.wake(run.spec.runId, [], [message]);
    });
  }

  watch(server: string, uri: string): Promise<void> {
    return this.onServer(server, () => this.deps.links.watch(server, uri));
  }

  unwatch(server: string, uri: string): Promise<void> {
    return this.onServer(server, () => this.deps.links.unwatch(server, uri));
  }

  readResource(server: string, uri: string): ReturnType<ManagementPort['readResource']> {
    return this.deps.links.read(server, uri);
  }

  assign(server: string, uri: string): Promise<void> {
    return this.onServer(server, () => {
      const lane = this.deps.intake.laneOf(server, uri);
      if (lane === null) throw new AgentdError('ITEM_UNROUTED', `no route matches ${uri} on ${server}`);
      if (!this.deps.reactions.assign(lane, server, uri)) {
        throw new AgentdError(
          'NO_FREE_SLOT',
          `${uri} cannot be taken now: no slot is free, or it is being worked on`,
        );
      }
    });
  }

  private onServer(server: string, act: () => void): Promise<void> {
    return this.inReactor(() => {
      if (!this.deps.links.peers().some(({ name }) => name === server)) throw unknownServer(server);
      act();
    });
  }

  private async command(act: () => void): Promise<OperatorResult> {
    await this.inReactor(act);
    const { draining, lame_duck, paused } = this.deps.supervisor.standing;
    return { draining, lame_duck, paused };
  }

  /** Commands change state where everything else does: on the reactor, between two events. */
  private inReactor<T>(act: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const attempt = (): void => {
        try {
          resolve(act());
        } catch (error) {
          reject(error);
        }
      };
      this.deps.post({ type: 'operator', act: attempt });
    });
  }
}
