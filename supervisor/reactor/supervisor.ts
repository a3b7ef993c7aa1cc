import { EXIT } from '../../protocol/exit-codes.ts';
import type { Children, RunMessage, RunOutcome } from '../children/run.ts';
import type { ConfigInForce } from '../config/in-force.ts';
import type { InstanceGate } from '../gates/admission-gate.ts';
import type { LeaseKeeper } from '../gates/lease-keeper.ts';
import type { Intelligence } from '../intelligence/intelligence.ts';
import type { Drain } from '../lifecycle/drain.ts';
import { type Readiness, readinessOf, type Standing } from '../lifecycle/readiness.ts';
import type { RootRuns } from '../lifecycle/root-runs.ts';
import { recordSpending, type TokenBudget } from '../lifecycle/token-budget.ts';
import type { Intake } from '../routing/intake.ts';
import type { Reactions } from '../routing/reactions.ts';
import type { Sessions } from '../routing/sessions.ts';
import type { Standby } from '../routing/standby.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Clock } from './clock.ts';
import type { SupervisorEvent } from './event.ts';
import { type Figures, figuresOf, publishFigures } from './figures.ts';
import { Hearing } from './hearing.ts';
import type { Timers } from './timers.ts';

export interface SupervisorParts {
  readonly settings: ConfigInForce;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly children: Children;
  readonly intake: Intake;
  readonly reactions: Reactions;
  readonly sessions: Sessions;
  readonly rootRuns: RootRuns;
  readonly standby: Standby | null;
  readonly keeper: LeaseKeeper;
  readonly drain: Drain;
  readonly budget: TokenBudget;
  readonly intelligence: Intelligence;
  readonly post: (event: SupervisorEvent) => void;
  /** A run is over: what was kept for it elsewhere may go. */
  readonly runEnded: (outcome: RunOutcome) => void;
  /** SIGHUP. */
  readonly reload: () => void;
  /** The idle tick. */
  readonly ticked: () => void;
  /** Tells the health thread. */
  readonly publish: (readiness: Readiness) => void;
}

/** The one owner of the supervisor's state: takes every event to its end, in order. */
export class Supervisor {
  /** The exit code when the work is over; a drain asked for from outside leaves it 0. */
  exitCode: number = EXIT.OK;
  private started = false;
  private finished = false;
  private paused = false;
  private lameDuck = false;
  private readonly hearing = new Hearing();

  constructor(private readonly parts: SupervisorParts) {}

  /** Facts of the admission gate. */
  gate(): InstanceGate {
    return {
      starting: !this.started,
      draining: this.draining,
      paused: this.paused,
      lameDuck: this.lameDuck,
      cannotSpawn: !this.parts.children.canStart,
      budgetRemaining: this.parts.budget.remaining,
    };
  }

  /** How the instance stands, for operators. */
  get standing(): Standing {
    const { draining } = this;
    const phase = draining ? 'draining' : this.started ? 'running' : 'starting';
    return { phase, paused: this.paused, lame_duck: this.lameDuck, draining };
  }

  get readiness(): Readiness {
    return readinessOf({
      phase: this.standing.phase,
      paused: this.paused,
      lameDuck: this.lameDuck,
      intelligenceAllDown: this.parts.intelligence.allDown,
      cannotSpawn: !this.parts.children.canStart,
      deaf: this.hearing.deaf,
    });
  }

  /** Running work stops at its next turn boundary and waits; nothing new starts. */
  setPaused(on: boolean): void {
    if (this.paused === on) return;
    this.paused = on;
    if (on) this.parts.children.pause(null);
    else this.parts.children.resume(null);
    this.publishReadiness();
  }

  /** Takes no new work but finishes what runs, and is not ready. */
  setLameDuck(on: boolean): void {
    this.lameDuck = on;
    this.publishReadiness();
  }

  /** Distinct URIs watched on all servers. */
  get watched(): number {
    return this.hearing.watched;
  }

  mayStart(): boolean {
    const { starting, draining, paused, lameDuck, budgetRemaining } = this.gate();
    return !(starting || draining || paused || lameDuck) && (budgetRemaining === null || budgetRemaining > 0);
  }

  /** The same for what needs a child of its own. */
  mayLaunch = (): boolean => this.mayStart() && this.parts.children.canStart;

  /** Connections are up: from here on work starts, and the instance may be ready. */
  markStarted(): void {
    this.started = true;
    this.publishReadiness();
    this.parts.post({ type: 'pump' });
  }

  /** The work of this process is over. The first reason is the one that counts. */
  finish(exitCode: number, cause: string): void {
    if (this.finished) return;
    this.finished = true;
    this.exitCode = exitCode;
    this.parts.post({ type: 'drain.request', cause });
  }

  handle(event: SupervisorEvent): void {
    const { parts } = this;
    switch (event.type) {
      case 'signal':
        if (event.signal === 'SIGHUP') parts.reload();
        else parts.drain.handle({ type: 'signal', signal: event.signal });
        this.publishReadiness();
        return;
      case 'drain.request':
        parts.drain.handle({
          type: 'request',
          cause: event.cause,
          ...(event.budgetMs === undefined ? {} : { budgetMs: event.budgetMs }),
        });
        this.publishReadiness();
        return;
      case 'drain.step_done':
        parts.drain.handle({ type: 'step_done', step: event.step });
        return;
      case 'tick':
        this.publishGauges();
        parts.ticked();
        return;
      case 'operator':
        event.act();
        return;
      case 'clock':
        parts.log.info('trigger.fired', { trigger: event.key });
        parts.rootRuns.trigger();
        return;
      case 'root.due':
        parts.rootRuns.trigger();
        return;
      case 'revisit':
        this.heard(event.server, event.uri, 'revisit', parts.clock.now());
        return;
      case 'described':
        parts.reactions.onDescribed(event);
        return;
      case 'shard.looked':
        if (!this.draining) parts.intake.placed(event, parts.clock.now());
        return;
      case 'resource.updated':
        this.heard(event.server, event.uri, event.cause, event.at);
        return;
      case 'pump':
      case 'peer.up':
      case 'peer.down':
        return;
      case 'peer.failed':
        this.finish(EXIT.MCP, `MCP server ${event.server} is gone for good: ${event.reason}`);
        return;
      case 'subscriptions':
        this.hearing.note(event);
        this.publishReadiness();
        return;
      case 'lease.event':
        parts.keeper.handle(event.id, event.event);
        return;
      case 'lease.start':
        this.leaseHolder(event.id).onLeaseStart(event.id);
        return;
      case 'lease.stop':
        this.leaseHolder(event.id).onLeaseStop(event.id, event.cause, event.withinMs);
        return;
      case 'lease.ended':
        this.leaseHolder(event.id).onLeaseEnded(event.id, event.end);
        return;
      case 'starting':
      case 'run.started':
      case 'run.begun':
      case 'session.turn':
      case 'run.settled':
        this.onRun(event);
    }
  }

  /** After each batch of events: start what may start, and say how things stand. */
  afterBatch(): void {
    const { parts } = this;
    parts.intake.rehome(parts.clock.now());
    if (this.mayStart()) {
      parts.sessions.pump();
      parts.reactions.pump();
      parts.rootRuns.pump();
      parts.standby?.pump();
      const due = parts.intake.nextDue();
      if (due !== null) parts.timers.set('pump', due, () => parts.post({ type: 'pump' }));
    }
  }

  private get draining(): boolean {
    return this.parts.drain.phase !== 'running';
  }

  /** Leases are held for reactions and for warm sessions. */
  private leaseHolder(id: string): Pick<Reactions, 'onLeaseStart' | 'onLeaseStop' | 'onLeaseEnded'> {
    return this.parts.sessions.owns(id) ? this.parts.sessions : this.parts.reactions;
  }

  private heard(server: string, uri: string, cause: string, at: number): void {
    if (this.draining) return;
    const from = this.parts.settings.current().standby?.assignFrom;
    if (from?.server === server && from.uri === uri) {
      this.parts.standby?.notified();
      return;
    }
    this.parts.intake.hear({ server, uri, cause, at }, this.parts.clock.now());
  }

  private onRun(message: RunMessage): void {
    const { parts } = this;
    switch (message.type) {
      case 'starting':
        this.publishReadiness();
        return;
      case 'run.started':
        parts.metrics.add('agent_runs_started_total');
        return;
      case 'run.begun':
        parts.reactions.onRunBegun(message.runId, message.agentPath);
        return;
      case 'session.turn':
        parts.sessions.onTurn(message.runId);
        return;
      case 'run.settled':
        this.onSettled(message.outcome);
    }
  }

  private onSettled(outcome: RunOutcome): void {
    const { parts } = this;
    recordSpending(parts.budget, outcome.usage, parts.log, parts.metrics);
    parts.metrics.add('agent_runs_total', { status: outcome.status });
    parts.metrics.observe('agent_run_duration_ms', outcome.durationMs, { status: outcome.status });
    parts.runEnded(outcome);
    if (parts.reactions.owns(outcome.runId)) parts.reactions.onRunSettled(outcome);
    else if (parts.sessions.owns(outcome.runId)) parts.sessions.onSettled(outcome, this.draining);
    else if (parts.rootRuns.owns(outcome.runId)) parts.rootRuns.onSettled(outcome);
  }

  publishReadiness(): void {
    const { metrics, publish } = this.parts;
    const { readiness } = this;
    metrics.set('agent_paused', this.paused ? 1 : 0);
    metrics.set('agent_lame_duck', this.lameDuck ? 1 : 0);
    metrics.set('agent_ready', readiness.ready ? 1 : 0);
    publish(readiness);
  }

  /** How much waits and runs. */
  figures(): Figures {
    return figuresOf(this.parts);
  }

  /** Sets the gauges that describe this moment. On each tick, and before each scrape. */
  publishGauges(): void {
    const { parts, watched } = this;
    parts.intelligence.publish();
    publishFigures(parts, watched);
  }
}
