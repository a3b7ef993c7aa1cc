import { newWork, step } from '../../../supervisor/coordination/work-machine.ts';
import type { Lease, Work, WorkEvent } from '../../../supervisor/coordination/work-model.ts';
import type { ClaimReply, LeaseReply } from '../../../supervisor/gates/lease-keeper.ts';

/** One call as it reached the ledger, and what was answered; a lease is named by its place in `granted`. */
export type LedgerCall = { readonly at: number; readonly key: string; readonly holder: string } & (
  | { readonly call: 'claim'; readonly ttlMs: number; readonly answer: string }
  | { readonly call: 'renew'; readonly lease: string; readonly ttlMs: number; readonly answer: string }
  | { readonly call: 'ack'; readonly lease: string; readonly answer: string }
  | { readonly call: 'release'; readonly lease: string; readonly reason: string; readonly answer: string }
);

export type LeaseFate = 'acked' | 'released' | 'expired';

/**
 * A ledger that is nothing but the work machine and a clock. Every grant is followed to its end, so
 * that invariants 2 and 3 can be checked.
 */
export class SimulatedLedger {
  private readonly items = new Map<string, Work>();
  /** Lease → how it ended; absent while it is live. */
  readonly fates = new Map<string, LeaseFate>();
  readonly granted = new Set<string>();
  readonly acks = new Map<string, number>();
  /** Every call, in the order the ledger saw them. */
  readonly history: LedgerCall[] = [];
  private fencing = 0;

  /** @param violated told of anything a ledger must never do */
  constructor(
    private readonly now: () => number,
    private readonly maxAttempts: number,
    private readonly violated: (what: string) => void,
  ) {}

  get settled(): number {
    let count = 0;
    for (const { state } of this.items.values())
      if (state.at === 'done' || state.at === 'dead_letter') count++;
    return count;
  }

  stateOf(key: string): Work['state']['at'] | 'unknown' {
    return this.items.get(key)?.state.at ?? 'unknown';
  }

  claim(key: string, holder: string, ttlMs: number): ClaimReply {
    const fencing = this.fencing + 1;
    const lease: Lease = { leaseId: `${key}/${fencing}`, holder, fencing };
    const answer = this.apply(key, { type: 'claim', now: this.now(), ttlMs, lease, overQuota: false });
    const told =
      answer.type === 'held'
        ? `held by ${answer.by}`
        : answer.type === 'granted'
          ? answer.lease.leaseId
          : '?';
    this.history.push({ at: this.now(), key, holder, call: 'claim', ttlMs, answer: told });
    if (answer.type === 'held') return { kind: 'lost', heldBy: answer.by };
    if (answer.type !== 'granted') throw new Error(`a claim was answered ${answer.type}`);
    const { leaseId } = answer.lease;
    if (!answer.again) {
      this.fencing = fencing;
      this.granted.add(leaseId);
    }
    return { kind: 'granted', leaseId, expiresInMs: answer.expiresInMs, fencingToken: answer.lease.fencing };
  }

  renew(key: string, leaseId: string, holder: string, ttlMs: number): LeaseReply {
    const reply = this.settle(key, { type: 'renew', now: this.now(), by: { leaseId, holder }, ttlMs });
    this.history.push({
      at: this.now(),
      key,
      holder,
      call: 'renew',
      lease: leaseId,
      ttlMs,
      answer: reply.kind,
    });
    return reply;
  }

  ack(key: string, leaseId: string, holder: string): LeaseReply {
    const was = this.stateOf(key);
    const reply = this.settle(key, { type: 'ack', now: this.now(), by: { leaseId, holder }, result: null });
    this.history.push({ at: this.now(), key, holder, call: 'ack', lease: leaseId, answer: reply.kind });
    if (reply.kind === 'ok' && was !== 'done') {
      this.end(leaseId, 'acked');
      this.acks.set(key, (this.acks.get(key) ?? 0) + 1);
    }
    return reply;
  }

  release(key: string, leaseId: string, holder: string, reason: string): LeaseReply {
    const reply = this.settle(key, { type: 'release', now: this.now(), by: { leaseId, holder }, reason });
    this.history.push({
      at: this.now(),
      key,
      holder,
      call: 'release',
      lease: leaseId,
      reason,
      answer: reply.kind,
    });
    if (reply.kind === 'ok') this.end(leaseId, 'released');
    return reply;
  }

  /** Lets the clock act on every item. */
  tick(): void {
    for (const key of this.items.keys()) this.apply(key, { type: 'tick', now: this.now() });
  }

  private settle(key: string, event: WorkEvent): LeaseReply {
    const answer = this.apply(key, event);
    if (answer.type === 'ok') {
      return answer.expiresInMs === null ? { kind: 'ok' } : { kind: 'ok', expiresInMs: answer.expiresInMs };
    }
    return { kind: 'refused' };
  }

  private apply(key: string, event: WorkEvent) {
    const work =
      this.items.get(key) ?? newWork({ maxAttempts: this.maxAttempts, notBefore: this.now(), waitingFor: 0 });
    const next = step(work, event);
    this.items.set(key, next.work);
    for (const effect of next.effects) {
      if (effect.type === 'lease.expired') this.end(effect.lease.leaseId, 'expired');
    }
    return next.answer;
  }

  private end(leaseId: string, fate: LeaseFate): void {
    const already = this.fates.get(leaseId);
    if (already !== undefined)
      this.violated(`lease ${leaseId} ended twice: ${already}, then ${fate} (invariant 3)`);
    if (!this.granted.has(leaseId)) this.violated(`lease ${leaseId} ended without having been granted`);
    this.fates.set(leaseId, fate);
  }
}
