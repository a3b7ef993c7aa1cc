import type { RunOutcome, RunSpec, StopCause } from '../../../supervisor/children/run.ts';
import type { ClaimConfig } from '../../../supervisor/config/config.ts';
import { type LeaseCalls, LeaseKeeper } from '../../../supervisor/gates/lease-keeper.ts';
import type { Clock } from '../../../supervisor/reactor/clock.ts';
import type { SupervisorEvent } from '../../../supervisor/reactor/event.ts';
import { Timers } from '../../../supervisor/reactor/timers.ts';
import { Intake } from '../../../supervisor/routing/intake.ts';
import { Reactions } from '../../../supervisor/routing/reactions.ts';
import type { Metrics } from '../../../supervisor/telemetry/metrics.ts';
import { nullLog } from '../null-log.ts';
import { routeConfig } from '../route-config.ts';
import { runOutcome } from '../run-outcome.ts';

const NO_METRICS: Metrics = {
  add: () => undefined,
  set: () => undefined,
  remove: () => undefined,
  observe: () => undefined,
  render: () => Promise.resolve(''),
};

export interface SimulatedChildren {
  launch(spec: RunSpec): void;
  stop(runId: string, cause: StopCause, withinMs: number | undefined): void;
  readonly active: number;
  /** False while its machine is known to start no children. */
  readonly canStart: boolean;
}

export interface SimulationClaim {
  readonly ttlMs: number;
  readonly shard: { readonly index: number; readonly count: number };
}

/**
 * The real gates, routing and lease keeper of one supervisor, over simulated children, calls and
 * time. Its reactor is a queue that the world drains.
 */
export class SimulatedSupervisor {
  readonly timers: Timers;
  readonly keeper: LeaseKeeper;
  draining = false;
  private readonly intake: Intake;
  private readonly reactions: Reactions;
  private readonly queue: SupervisorEvent[] = [];
  private handling = false;

  constructor(
    private readonly clock: Clock,
    claim: SimulationClaim,
    calls: LeaseCalls,
    children: SimulatedChildren,
    random: () => number,
    offered: (uri: string) => void,
  ) {
    const config: ClaimConfig = {
      server: 'coord',
      style: 'tool',
      ttlMs: claim.ttlMs,
      renewFraction: 0.33,
      key: 'run_id',
    };
    this.timers = new VirtualTimers(clock);
    const post = (event: SupervisorEvent): void => this.post(event);
    const shared = { clock, timers: this.timers, log: nullLog, metrics: NO_METRICS, post, random };
    this.keeper = new WatchedKeeper({ ...shared, calls }, offered);
    this.intake = new Intake(
      { routes: [routeConfig({ name: 'route', claim: config })], shard: { ...claim.shard, timer: 'shard0' } },
      nullLog,
      NO_METRICS,
      () => 64,
    );
    this.reactions = new Reactions(this.intake, {
      ...shared,
      children,
      keeper: this.keeper,
      newRunId: () => 'unclaimed',
      traceparent: () => '',
      spec: (_lane, run) => ({
        runId: run.runId,
        kind: 'run',
        instruction: '',
        event: { uri: run.uri, server: run.server, sequence: 1 },
        tools: [],
        limits: { max_steps: 1, max_tokens: 1, deadline_ms: 1, tool_timeout_ms: 1 },
        outputContract: null,
        traceparent: '',
        route: 'route',
      }),
      describe: () => Promise.resolve(null),
      gate: () => ({
        starting: false,
        draining: this.draining,
        paused: false,
        lameDuck: false,
        cannotSpawn: !children.canStart,
        budgetRemaining: null,
      }),
      maxTotal: () => 64,
    });
  }

  hear(uri: string): void {
    if (this.draining) return;
    this.intake.hear({ server: 's', uri, cause: 'notification', at: this.clock.now() }, this.clock.now());
    this.pump();
  }

  settled(runId: string, over: Partial<RunOutcome>): void {
    this.post({ type: 'run.settled', outcome: runOutcome({ ...over, runId }) });
  }

  drain(): void {
    this.draining = true;
    this.keeper.drain(1_000);
  }

  /** The next moment something of its own is due, on its own clock; null when nothing is. */
  nextDue(): number | null {
    const due = [
      (this.timers as VirtualTimers).nextDue(),
      this.draining ? null : this.intake.nextDue(),
    ].filter((at) => at !== null);
    return due.length === 0 ? null : Math.min(...due);
  }

  /** Does what is due. */
  wake(): void {
    this.timers.runDue();
    this.pump();
  }

  private pump(): void {
    if (!this.draining) this.reactions.pump();
  }

  private post(event: SupervisorEvent): void {
    this.queue.push(event);
    if (this.handling) return;
    this.handling = true;
    for (let next = this.queue.shift(); next !== undefined; next = this.queue.shift()) this.handle(next);
    this.handling = false;
    this.pump();
  }

  private handle(event: SupervisorEvent): void {
    switch (event.type) {
      case 'lease.event':
        this.keeper.handle(event.id, event.event);
        return;
      case 'lease.start':
        this.reactions.onLeaseStart(event.id);
        return;
      case 'lease.stop':
        this.reactions.onLeaseStop(event.id, event.cause, event.withinMs);
        return;
      case 'lease.ended':
        this.reactions.onLeaseEnded(event.id, event.end);
        return;
      case 'run.settled':
        this.reactions.onRunSettled(event.outcome);
        return;
      case 'revisit':
        if (!this.draining) {
          this.intake.hear({ ...event, cause: 'revisit', at: this.clock.now() }, this.clock.now());
        }
        return;
      default:
        throw new Error(`the simulation does not know ${event.type}`);
    }
  }
}

/** A keeper that tells of each new claim before it is asked for. */
class WatchedKeeper extends LeaseKeeper {
  constructor(
    deps: ConstructorParameters<typeof LeaseKeeper>[0],
    private readonly onOffer: (uri: string) => void,
  ) {
    super(deps);
  }

  override offer(...claim: Parameters<LeaseKeeper['offer']>): void {
    this.onOffer(claim[1].item);
    super.offer(...claim);
  }
}

/** Timers that only the world fires. */
class VirtualTimers extends Timers {
  private readonly due = new Map<string, number>();

  override set(key: string, at: number, fire: () => void): void {
    this.due.set(key, at);
    this.fires.set(key, fire);
  }

  override clear(key: string): void {
    this.due.delete(key);
    this.fires.delete(key);
  }

  private readonly fires = new Map<string, () => void>();

  nextDue(): number | null {
    let next: number | null = null;
    for (const at of this.due.values()) if (next === null || at < next) next = at;
    return next;
  }

  constructor(private readonly time: Clock) {
    super(time);
  }

  override runDue(): void {
    for (;;) {
      let first: string | null = null;
      let firstAt = Number.POSITIVE_INFINITY;
      for (const [key, at] of this.due) {
        if (at <= this.time.now() && at < firstAt) {
          first = key;
          firstAt = at;
        }
      }
      if (first === null) return;
      const fire = this.fires.get(first);
      this.clear(first);
      fire?.();
    }
  }
}
