import { HELD_BY_ACKED, HELD_BY_DEAD_LETTER } from '../../protocol/work-tools.ts';
import type { Children, RunOutcome, RunSpec } from '../children/run.ts';
import { type Admission, admit } from '../gates/admission-gate.ts';
import { claimTarget, needsResourceInfo } from '../gates/claim-target.ts';
import type { LeaseKeeper } from '../gates/lease-keeper.ts';
import type { LeaseEnd } from '../gates/lease-machine.ts';
import type { ResourceInfo } from '../mcp/peers.ts';
import type { Clock } from '../reactor/clock.ts';
import type { SupervisorEvent } from '../reactor/event.ts';
import type { Timers } from '../reactor/timers.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { deliveryKey, type Lane, splitDeliveryKey } from './intake.ts';

/** One reaction between its queue and its end: described → claimed → run → settled. */
interface Reaction {
  readonly id: string;
  readonly lane: Lane;
  readonly key: string;
  readonly server: string;
  readonly uri: string;
  /** Monotonic ms at which the update was heard. */
  readonly since: number;
  stage: 'claiming' | 'running' | 'settling';
  claimed: boolean;
  outcome: RunOutcome | null;
  lease: LeaseEnd | null;
}

export interface ReactionDeps {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly children: Pick<Children, 'launch' | 'stop' | 'active'>;
  readonly keeper: Pick<LeaseKeeper, 'offer' | 'completed' | 'notCompleted'>;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly post: (event: SupervisorEvent) => void;
  readonly random: () => number;
  readonly newRunId: () => string;
  readonly traceparent: () => string;
  /** The run of one update on a lane. */
  readonly spec: (
    lane: Lane,
    run: { runId: string; server: string; uri: string; traceparent: string },
  ) => RunSpec;
  /** Looks at a resource, for claim keys that depend on it; bounded, rejects when it cannot. */
  readonly describe: (server: string, uri: string) => Promise<ResourceInfo | null>;
  readonly gate: () => {
    readonly draining: boolean;
    readonly paused: boolean;
    readonly lameDuck: boolean;
    readonly budgetRemaining: number | null;
  };
  readonly maxTotal: number;
}

const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;

/** Takes waiting updates through admission and claim into children, and settles them. */
export class Reactions {
  private readonly reactions = new Map<string, Reaction>();
  /** Tries per delivery key since its last good end; drives the backoff. */
  private readonly failures = new Map<string, number>();
  /** Resources being looked at before their claim can be asked for. */
  private describing = 0;
  private turn = 0;

  constructor(
    private readonly lanes: readonly Lane[],
    private readonly deps: ReactionDeps,
  ) {}

  /** Begun, but neither claimed nor running yet. */
  get claiming(): number {
    let count = this.describing;
    for (const reaction of this.reactions.values()) if (reaction.stage === 'claiming') count++;
    return count;
  }

  owns(runId: string): boolean {
    return this.reactions.has(runId);
  }

  /** Starts whatever may start now, lanes in turn so that none starves another. */
  pump(): void {
    const { lanes } = this;
    this.turn = (this.turn + 1) % Math.max(1, lanes.length);
    let waiting = new Set(lanes.keys());
    while (waiting.size > 0) {
      const still = new Set<number>();
      for (const offset of waiting) {
        const index = (this.turn + offset) % lanes.length;
        const lane = lanes[index];
        if (lane !== undefined && this.startOne(lane)) still.add(offset);
      }
      waiting = still;
    }
  }

  /**
   * Takes an item now, whatever its shard, if it may start now; false when it may not or is being
   * worked on. On a claim route it is claimed like any other.
   */
  assign(lane: Lane, server: string, uri: string): boolean {
    const { deps } = this;
    const key = deliveryKey(server, uri);
    const now = deps.clock.now();
    if (lane.queue.stateOf(key) === 'delivering' || this.admission(lane).kind === 'wait') return false;
    lane.queue.take(key, now);
    this.begin(lane, key, now);
    return true;
  }

  /** Starts the oldest waiting update of a lane; false when nothing waits or it may not start. */
  private startOne(lane: Lane): boolean {
    const { deps } = this;
    const now = deps.clock.now();
    const next = lane.queue.next(now);
    if (next === null) return false;
    if (this.admission(lane).kind === 'wait') return false;
    lane.queue.begin(next.uri);
    this.begin(lane, next.uri, next.since);
    return true;
  }

  private admission(lane: Lane): Admission {
    const { deps } = this;
    return admit({
      ...deps.gate(),
      routeInflight: lane.queue.inflight,
      routeMaxInflight: lane.route.config.maxInflight,
      active: deps.children.active + this.claiming,
      maxTotal: deps.maxTotal,
    });
  }

  private begin(lane: Lane, key: string, since: number): void {
    const { claim } = lane.route.config;
    if (claim !== null && needsResourceInfo(claim)) {
      const { server, uri } = splitDeliveryKey(key);
      this.describing++;
      this.deps
        .describe(server, uri)
        .then((info) =>
          this.deps.post({ type: 'described', route: lane.route.config.name, key, since, info }),
        )
        .catch(() =>
          this.deps.post({ type: 'described', route: lane.route.config.name, key, since, info: 'failed' }),
        );
      return;
    }
    this.claimOrRun(lane, key, since, null);
  }

  /** The resource has been looked at; its claim can be asked for now. */
  onDescribed(event: Extract<SupervisorEvent, { type: 'described' }>): void {
    this.describing--;
    const lane = this.lanes.find((one) => one.route.config.name === event.route);
    if (lane === undefined) return;
    if (event.info === 'failed' || this.deps.gate().draining) this.putBack(lane, event.key);
    else this.claimOrRun(lane, event.key, event.since, event.info);
  }

  private claimOrRun(lane: Lane, key: string, since: number, info: ResourceInfo | null): void {
    const { deps } = this;
    const { server, uri } = splitDeliveryKey(key);
    const { claim, name } = lane.route.config;
    const traceparent = deps.traceparent();
    if (claim === null) {
      const id = deps.newRunId();
      this.reactions.set(id, this.reaction(id, lane, key, since, 'running'));
      this.launch(id, traceparent);
      return;
    }
    const { runId, target } = claimTarget(claim, { server, uri, route: name, info }, traceparent);
    if (this.reactions.has(runId)) {
      // Two URIs with one claim key: the second waits, or a repeated claim would hand us our own lease.
      this.putBack(lane, key);
      return;
    }
    this.reactions.set(runId, this.reaction(runId, lane, key, since, 'claiming'));
    deps.keeper.offer(runId, target);
  }

  /** The lease is ours: run (invariant 1: shard, admission and claim have all been passed). */
  onLeaseStart(id: string): void {
    const reaction = this.reactions.get(id);
    if (reaction === undefined) return;
    reaction.stage = 'running';
    reaction.claimed = true;
    if (this.deps.gate().draining) {
      reaction.stage = 'settling';
      this.deps.keeper.notCompleted(id, 'drain');
      return;
    }
    this.launch(id, this.deps.traceparent());
  }

  /** The child has begun: the reaction's lag is from the notification to here. */
  onRunBegun(id: string, agentPath: string): void {
    const reaction = this.reactions.get(id);
    if (reaction === undefined) return;
    this.deps.log.info('trigger.fired', {
      server: reaction.server,
      uri: reaction.uri,
      route: reaction.lane.route.config.name,
      reaction: id,
      subagent: agentPath,
      lag_ms: Math.round((this.deps.clock.now() - reaction.since) * 10) / 10,
    });
  }

  onLeaseStop(id: string, cause: 'lease_lost' | 'lease_expired', withinMs: number): void {
    if (this.reactions.get(id)?.stage === 'running') this.deps.children.stop(id, cause, withinMs);
  }

  onLeaseEnded(id: string, end: LeaseEnd): void {
    const reaction = this.reactions.get(id);
    if (reaction === undefined) return;
    reaction.lease = end;
    if (reaction.stage === 'running' && reaction.outcome === null) return; // its run.settled follows
    this.dispose(reaction);
  }

  onRunSettled(outcome: RunOutcome): void {
    const reaction = this.reactions.get(outcome.runId);
    if (reaction === undefined) return;
    reaction.outcome = outcome;
    reaction.stage = 'settling';
    if (!reaction.claimed || reaction.lease !== null) this.dispose(reaction);
    else if (outcome.status === 'completed') this.deps.keeper.completed(reaction.id, outcome.result);
    else this.deps.keeper.notCompleted(reaction.id, releaseReason(outcome));
  }

  private launch(id: string, traceparent: string): void {
    const reaction = this.reactions.get(id);
    if (reaction === undefined) return;
    const { lane, server, uri } = reaction;
    this.deps.metrics.add('agent_reactions_total');
    this.deps.children.launch(this.deps.spec(lane, { runId: id, server, uri, traceparent }));
  }

  /** The end of a reaction: both its run and its lease are over. */
  private dispose(reaction: Reaction): void {
    const { deps } = this;
    const { lane, key, lease } = reaction;
    this.reactions.delete(reaction.id);
    switch (lease?.kind) {
      case 'unasked':
      case 'released':
        if (deps.gate().draining) this.finish(lane, key);
        else this.putBack(lane, key);
        return;
      case 'lost':
        this.finish(lane, key);
        if (lease.heldBy !== HELD_BY_ACKED && lease.heldBy !== HELD_BY_DEAD_LETTER) this.revisit(reaction);
        return;
      case 'expired':
        // Somebody else's by now, or nobody's: look again when that lease, too, would be over.
        this.finish(lane, key);
        this.revisit(reaction);
        return;
      case 'acked':
      case undefined:
        this.finish(lane, key);
    }
  }

  private finish(lane: Lane, key: string): void {
    this.failures.delete(key);
    lane.queue.settle(key, this.deps.clock.now());
  }

  /** Back into the queue, to be tried again after a backoff. */
  private putBack(lane: Lane, key: string): void {
    const { clock, random } = this.deps;
    const tries = this.failures.get(key) ?? 0;
    this.failures.set(key, tries + 1);
    const pause = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(tries, 10));
    lane.queue.retry(key, clock.now() + pause * (0.5 + random()));
  }

  /**
   * The item is in somebody else's hands. If that holder dies the ledger frees it after a ttl, and
   * nobody will notify us of that: so look again then, or a dead replica's work would stay undone.
   */
  private revisit(reaction: Reaction): void {
    const { deps } = this;
    const { claim, name } = reaction.lane.route.config;
    if (claim === null) return;
    const at = deps.clock.now() + claim.ttlMs * (1 + deps.random() * 0.25);
    const { server, uri } = reaction;
    deps.timers.set(`revisit:${name}:${reaction.key}`, at, () => deps.post({ type: 'revisit', server, uri }));
  }

  private reaction(id: string, lane: Lane, key: string, since: number, stage: Reaction['stage']): Reaction {
    const { server, uri } = splitDeliveryKey(key);
    return { id, lane, key, server, uri, since, stage, claimed: false, outcome: null, lease: null };
  }
}

/** The first word tells the ledger whether an attempt was spent: a drain spends none. */
function releaseReason(outcome: RunOutcome): string {
  if (outcome.cause === 'drain' || outcome.cause === 'forced') return 'drain';
  const detail = outcome.error === null ? '' : `: ${outcome.error.message.slice(0, 500)}`;
  return `${outcome.status}${detail}`;
}
