import type { RunOutcome } from '../children/run.ts';
import { type Admission, admit } from '../gates/admission-gate.ts';
import { claimTarget, needsResourceInfo } from '../gates/claim-target.ts';
import type { ClaimTarget } from '../gates/lease-keeper.ts';
import type { LeaseEnd } from '../gates/lease-model.ts';
import type { ResourceInfo } from '../mcp/peers.ts';
import type { SupervisorEvent } from '../reactor/event.ts';
import { disposalOf, revisitIn } from './disposal.ts';
import { deliveryKey, type Intake, type Lane, splitDeliveryKey } from './intake.ts';
import { neverBegan, newReaction, type Reaction, type ReactionDeps, releaseReason } from './reaction.ts';
import type { PulledItem } from './standby.ts';

const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;

/** Takes waiting updates through admission and claim into children, and settles them. */
export class Reactions {
  private readonly reactions = new Map<string, Reaction>();
  /** Tries per delivery key since its last good end; drives the backoff. */
  private readonly failures = new Map<string, number>();
  /** Delivery keys of resources being looked at before their claim can be asked for. */
  private readonly describing = new Map<string, Lane>();
  private turn = 0;

  constructor(
    private readonly intake: Pick<Intake, 'lanes'>,
    private readonly deps: ReactionDeps,
  ) {}

  /** Begun, but neither claimed nor running yet. */
  get claiming(): number {
    let count = this.describing.size;
    for (const reaction of this.reactions.values()) if (reaction.stage === 'claiming') count++;
    return count;
  }

  owns(runId: string): boolean {
    return this.reactions.has(runId);
  }

  /** Run ids, which are the claim keys on claim routes, of everything begun and not settled. */
  get ids(): readonly string[] {
    return [...this.reactions.keys()];
  }

  /** Starts whatever may start now, lanes in turn so that none starves another. */
  pump(): void {
    const { lanes } = this.intake;
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

  /**
   * Runs an item the ledger has leased to us already. One that is being worked on here, or that came
   * after a drain began, is given back.
   */
  adopt(lane: Lane, server: string, item: PulledItem, target: ClaimTarget): void {
    const { deps } = this;
    const key = deliveryKey(server, item.uri);
    const { claimKey } = item;
    if (this.reactions.has(claimKey)) return; // our own lease, handed out again: it is kept already
    if (lane.queue.stateOf(key) === 'delivering' || deps.gate().draining) {
      deps.keeper.giveBack(
        claimKey,
        target,
        item.grant,
        deps.gate().draining ? 'drain' : 'not_started: busy',
      );
      return;
    }
    const now = deps.clock.now();
    lane.queue.take(key, now);
    this.reactions.set(claimKey, newReaction(claimKey, lane, key, now, 'claiming', target.traceparent, true));
    deps.keeper.adopt(claimKey, target, item.grant);
  }

  /** Gives back an item the ledger has leased to us and that cannot be run here. */
  refuse(target: ClaimTarget, item: PulledItem, reason: string): void {
    this.deps.keeper.giveBack(item.claimKey, target, item.grant, reason);
  }

  /** Starts the oldest waiting update of a lane; false when nothing waits or it may not start. */
  private startOne(lane: Lane): boolean {
    // Updates of a continue route are turns of its session.
    if (lane.route.config.disposition.kind !== 'spawn') return false;
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
      maxTotal: deps.maxTotal(),
    });
  }

  private begin(lane: Lane, key: string, since: number): void {
    const { claim } = lane.route.config;
    if (claim !== null && needsResourceInfo(claim)) {
      const { server, uri } = splitDeliveryKey(key);
      this.describing.set(key, lane);
      this.deps
        .describe(server, uri)
        .then((info) => this.deps.post({ type: 'described', key, since, info }))
        .catch(() => this.deps.post({ type: 'described', key, since, info: 'failed' }));
      return;
    }
    this.claimOrRun(lane, key, since, null);
  }

  /** The resource has been looked at; its claim can be asked for now. */
  onDescribed(event: Extract<SupervisorEvent, { type: 'described' }>): void {
    const lane = this.describing.get(event.key);
    if (lane === undefined) return;
    this.describing.delete(event.key);
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
      this.reactions.set(id, newReaction(id, lane, key, since, 'running', traceparent));
      this.launch(id);
      return;
    }
    const { runId, target } = claimTarget(claim, { server, uri, route: name, info }, traceparent);
    if (this.reactions.has(runId)) {
      // Two URIs with one claim key: the second waits, or a repeated claim would hand us our own lease.
      this.putBack(lane, key);
      return;
    }
    this.reactions.set(runId, newReaction(runId, lane, key, since, 'claiming', traceparent));
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
    this.launch(id);
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
      lag_ms: this.deps.clock.now() - reaction.since,
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
    else this.deps.keeper.notCompleted(reaction.id, releaseReason(outcome, this.deps.gate().draining));
  }

  private launch(id: string): void {
    const reaction = this.reactions.get(id);
    if (reaction === undefined) return;
    const { lane, server, uri, traceparent } = reaction;
    this.deps.metrics.add('agent_reactions_total');
    this.deps.children.launch(this.deps.spec(lane, { runId: id, server, uri, traceparent }));
  }

  /** The end of a reaction: both its run and its lease are over. */
  private dispose(reaction: Reaction): void {
    const { lane, key, lease, pulled, outcome } = reaction;
    this.reactions.delete(reaction.id);
    const unseen = outcome !== null && neverBegan(outcome);
    switch (disposalOf({ lease, pulled, neverBegan: unseen, draining: this.deps.gate().draining })) {
      case 'put_back':
        this.putBack(lane, key);
        return;
      case 'finish':
        this.finish(lane, key);
        return;
      case 'revisit':
        this.finish(lane, key);
        this.revisit(reaction);
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
   * The item is in somebody else's hands. If that holder dies the ledger frees it when the lease is
   * over, and nobody will notify us of that: so look again then, or its work would stay undone.
   */
  private revisit(reaction: Reaction): void {
    const { deps } = this;
    const { claim, name } = reaction.lane.route.config;
    if (claim === null) return;
    const at = deps.clock.now() + revisitIn(claim.ttlMs, reaction.lease, deps.random());
    const { server, uri } = reaction;
    deps.timers.set(`revisit:${name}:${reaction.key}`, at, () => deps.post({ type: 'revisit', server, uri }));
  }
}
