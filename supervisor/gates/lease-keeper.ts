import type { Clock } from '../reactor/clock.ts';
import type { Timers } from '../reactor/timers.ts';
import type { Log, LogFields } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { traceIdOf } from '../telemetry/trace.ts';
import { OFFERED, stepLease } from './lease-machine.ts';
import type { LeaseEffect, LeaseEnd, LeaseEvent, LeaseRules, LeaseState } from './lease-model.ts';
import { unaskedClaim } from './unasked-claim.ts';

/** What is claimed, and under which names. */
export interface ClaimTarget {
  readonly server: string;
  /** How the server grants leases: by its work.* tools, or by compare-and-set on the item itself. */
  readonly style: 'tool' | 'resource';
  /** The item as the ledger knows it. */
  readonly item: string;
  readonly claimKey: string;
  readonly traceparent: string;
  readonly ttlMs: number;
  readonly renewFraction: number;
}

/** A lease somebody else asked the ledger for, to be kept from here on. */
export interface Grant {
  readonly leaseId: string;
  readonly expiresInMs: number;
  /** Monotonic ms at which the call that brought it was sent. */
  readonly sentAt: number;
}

export type ClaimReply =
  | {
      readonly kind: 'granted';
      readonly leaseId: string;
      readonly expiresInMs: number;
      readonly fencingToken: number | null;
    }
  | { readonly kind: 'lost'; readonly heldBy: string; readonly retryAfterMs?: number | undefined }
  | { readonly kind: 'failed'; readonly error: string };

export type LeaseReply =
  | { readonly kind: 'ok'; readonly expiresInMs?: number }
  /** Definitive: the lease is no longer ours. */
  | { readonly kind: 'refused' }
  /** Transient: no answer, or one that makes no sense. */
  | { readonly kind: 'failed'; readonly error: string };

/** Calls to a coordination server. Each is bounded by its deadline (ms) and never rejects. */
export interface LeaseCalls {
  claim(target: ClaimTarget, deadlineMs: number): Promise<ClaimReply>;
  renew(target: ClaimTarget, leaseId: string, deadlineMs: number): Promise<LeaseReply>;
  ack(target: ClaimTarget, leaseId: string, result: string, deadlineMs: number): Promise<LeaseReply>;
  release(target: ClaimTarget, leaseId: string, reason: string, deadlineMs: number): Promise<LeaseReply>;
}

/** What the keeper tells the reactor; `id` is the caller's name for the claim. */
export type LeaseMessage =
  | { readonly type: 'lease.event'; readonly id: string; readonly event: LeaseEvent }
  | { readonly type: 'lease.start'; readonly id: string }
  | {
      readonly type: 'lease.stop';
      readonly id: string;
      readonly cause: 'lease_lost' | 'lease_expired';
      readonly withinMs: number;
    }
  | { readonly type: 'lease.ended'; readonly id: string; readonly end: LeaseEnd };

export interface LeaseKeeperDeps {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly calls: LeaseCalls;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly post: (message: LeaseMessage) => void;
  /** In [0, 1): spreads retries. */
  readonly random: () => number;
}

interface Entry {
  readonly target: ClaimTarget;
  readonly rules: LeaseRules;
  state: LeaseState;
}

const LONGEST_CALL_MS = 10_000;
const CLAIM_ATTEMPTS = 3;

/** Carries out what the lease machine decides: the calls, the timers, the log lines. */
export class LeaseKeeper {
  private readonly entries = new Map<string, Entry>();
  private readonly waiters = new Set<() => void>();
  /** While draining, the most a release may take, ms. */
  private releaseDeadlineMs = LONGEST_CALL_MS;

  constructor(private readonly deps: LeaseKeeperDeps) {}

  /** Claims that are offered and not yet answered. */
  get offered(): number {
    let count = 0;
    for (const entry of this.entries.values()) if (entry.state.state === 'offered') count++;
    return count;
  }

  /** Items whose lease is still open, for a drain that has to say what it could not give back. */
  open(): { readonly item: string; readonly state: LeaseState['state'] }[] {
    return [...this.entries.values()].map((entry) => ({ item: entry.target.item, state: entry.state.state }));
  }

  /** Resolves when no claim is offered (or, with `all`, open), at the latest after `budgetMs`. */
  async settled(which: 'offered' | 'all', budgetMs: number): Promise<void> {
    const left = (): number => (which === 'all' ? this.entries.size : this.offered);
    if (left() === 0) return;
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        this.waiters.delete(check);
        resolve();
      };
      const check = (): void => {
        if (left() === 0) finish();
      };
      const timer = setTimeout(finish, budgetMs);
      this.waiters.add(check);
    });
  }

  /** Asks for a lease. The answer arrives as `lease.start` or `lease.ended`. */
  offer(id: string, target: ClaimTarget): void {
    const entry = this.enter(id, target);
    this.logOf(entry).debug('claim.offered', this.fields(entry));
    this.apply(id, entry, { type: 'claim' });
  }

  /** Keeps a lease the ledger has granted already. */
  adopt(id: string, target: ClaimTarget, grant: Grant): void {
    this.enter(id, target);
    this.handle(id, { type: 'granted', ...grant });
  }

  /** Gives a lease back that will not be used. */
  giveBack(id: string, target: ClaimTarget, grant: Grant, reason: string): void {
    const entry = this.enter(`unused:${id}`, target);
    entry.state = { state: 'claimed', leaseId: grant.leaseId, expiresAt: grant.sentAt + grant.expiresInMs };
    this.handle(`unused:${id}`, { type: 'not_completed', reason });
  }

  private enter(id: string, target: ClaimTarget): Entry {
    const rules: LeaseRules = {
      ttlMs: target.ttlMs,
      renewFraction: target.renewFraction,
      claimAttempts: CLAIM_ATTEMPTS,
      retryMs: (attempt) => Math.min(5_000, 100 * 2 ** attempt) * (0.5 + this.deps.random()),
    };
    const entry: Entry = { target, rules, state: OFFERED };
    this.entries.set(id, entry);
    return entry;
  }

  /** The work is done: acknowledge it with its result. */
  completed(id: string, result: string): void {
    this.handle(id, { type: 'completed', result });
  }

  /** The work ended in any other way: give the item back. */
  notCompleted(id: string, reason: string): void {
    this.handle(id, { type: 'not_completed', reason });
  }

  /** A drain began: what is granted from now on is given back at once, and releases are bounded. */
  drain(releaseBudgetMs: number): void {
    this.releaseDeadlineMs = Math.min(this.releaseDeadlineMs, releaseBudgetMs);
    for (const id of [...this.entries.keys()]) this.handle(id, { type: 'abandon' });
  }

  /** Feeds one event to the machine of one claim; unknown ids are late replies and ignored. */
  handle(id: string, event: LeaseEvent): void {
    const entry = this.entries.get(id);
    if (entry === undefined) return;
    const before = entry.state;
    const step = stepLease(before, event, this.deps.clock.now(), entry.rules);
    entry.state = step.state;
    this.tell(entry, before, event);
    for (const effect of step.effects) this.apply(id, entry, effect);
    for (const check of [...this.waiters]) check();
  }

  private apply(id: string, entry: Entry, effect: LeaseEffect): void {
    const { deps } = this;
    const { target } = entry;
    const reply = (event: LeaseEvent): void => deps.post({ type: 'lease.event', id, event });
    const bounded = Math.min(LONGEST_CALL_MS, target.ttlMs);
    switch (effect.type) {
      case 'claim': {
        const sentAt = deps.clock.now();
        void deps.calls.claim(target, bounded).then((answer) => {
          if (answer.kind === 'granted') {
            reply({ type: 'granted', leaseId: answer.leaseId, expiresInMs: answer.expiresInMs, sentAt });
          } else if (answer.kind === 'lost') {
            reply({ type: 'denied', heldBy: answer.heldBy, retryAfterMs: answer.retryAfterMs });
          } else reply({ type: 'claim_failed', error: answer.error });
        });
        return;
      }
      case 'renew': {
        const sentAt = deps.clock.now();
        const deadline = Math.max(100, Math.min(5_000, target.ttlMs * target.renewFraction));
        void deps.calls.renew(target, effect.leaseId, deadline).then((answer) => {
          if (answer.kind === 'ok') {
            reply({ type: 'renewed', expiresInMs: answer.expiresInMs ?? target.ttlMs, sentAt });
          } else if (answer.kind === 'refused') reply({ type: 'renew_refused' });
          else reply({ type: 'renew_failed', error: answer.error });
        });
        return;
      }
      case 'ack':
        void deps.calls.ack(target, effect.leaseId, effect.result, bounded).then((answer) => {
          if (answer.kind === 'ok') reply({ type: 'acked' });
          else if (answer.kind === 'refused') reply({ type: 'ack_refused' });
          else reply({ type: 'ack_failed', error: answer.error });
        });
        return;
      case 'release': {
        const deadline = Math.min(bounded, this.releaseDeadlineMs);
        void deps.calls.release(target, effect.leaseId, effect.reason, deadline).then((answer) => {
          if (answer.kind === 'ok') reply({ type: 'released' });
          else if (answer.kind === 'refused') reply({ type: 'release_refused' });
          else reply({ type: 'release_failed', error: answer.error });
        });
        return;
      }
      case 'start':
        deps.post({ type: 'lease.start', id });
        return;
      case 'stop':
        deps.post({ type: 'lease.stop', id, cause: effect.cause, withinMs: effect.withinMs });
        return;
      case 'timer': {
        const due = { retry: 'retry_due', renew: 'renew_due', expiry: 'expiry_due' } as const;
        deps.timers.set(`lease:${effect.name}:${id}`, effect.at, () => reply({ type: due[effect.name] }));
        return;
      }
      case 'ended':
        for (const name of ['retry', 'renew', 'expiry']) deps.timers.clear(`lease:${name}:${id}`);
        this.entries.delete(id);
        deps.post({ type: 'lease.ended', id, end: effect.end });
    }
  }

  /** Log lines and counters of one step. */
  private tell(entry: Entry, before: LeaseState, event: LeaseEvent): void {
    const { metrics } = this.deps;
    const log = this.logOf(entry);
    const fields = this.fields(entry);
    if (before.state === 'offered' && event.type === 'granted') {
      metrics.add('agent_claims_granted_total');
      log.info('claim.granted', { ...fields, lease_id: event.leaseId, expires_in_ms: event.expiresInMs });
    }
    if (before.state === 'claimed' && event.type === 'renewed') log.debug('claim.renewed', fields);
    if (before.state === 'claimed' && event.type === 'renew_failed') {
      log.warn('claim.renew.fail', { ...fields, msg: event.error });
    }
    if (entry.state.state !== 'ended' || before.state === 'ended') return;
    const { end } = entry.state;
    switch (end.kind) {
      case 'acked':
        log.info('claim.acked', fields);
        return;
      case 'released':
        metrics.add('agent_claims_released_total');
        log.info('claim.released', { ...fields, reason: end.reason });
        return;
      case 'expired':
        metrics.add('agent_claims_expired_total');
        log.warn('claim.expired', { ...fields, msg: end.why });
        return;
      case 'lost':
        metrics.add('agent_claims_lost_total');
        log.debug('claim.lost', { ...fields, held_by: end.heldBy });
        return;
      case 'unasked':
        log.warn('claim.offered', { ...fields, ...unaskedClaim(entry, before, end.error) });
    }
  }

  /** Lines of a lease belong to the run it is for, whose id is the claim key. */
  private logOf({ target }: Entry): Log {
    const traceId = traceIdOf(target.traceparent);
    return this.deps.log.as({ runId: target.claimKey, ...(traceId === null ? {} : { traceId }) });
  }

  private fields(entry: Entry): LogFields {
    return { server: entry.target.server, item: entry.target.item, claim_key: entry.target.claimKey };
  }
}
