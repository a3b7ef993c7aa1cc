import { errorMessage } from '../../protocol/errors.ts';
import { HELD_BY_ACKED, HELD_BY_DEAD_LETTER, META } from '../../protocol/work-tools.ts';
import type { ClaimReply, ClaimTarget, LeaseCalls, LeaseReply } from '../gates/lease-keeper.ts';
import type { Clock } from '../reactor/clock.ts';
import type { CallResult, Peer, Peers } from './peers.ts';
import { LEASE_CAS } from './required-tools.ts';
import { casResult, type LeaseVersion, leaseIn, type ResourceLease } from './resource-lease-document.ts';
import { BoundedMap, ForeignLeases } from './resource-lease-observations.ts';
import { payload } from './work-client.ts';

export interface ResourceLeasesOptions {
  readonly peers: Peers;
  readonly clock: Clock;
  /** Of this very process: two processes must never look like one holder. */
  readonly instance: string;
  /** `K/N`; null when unsharded, and then absent from `_meta`. */
  readonly shard: string | null;
}

/** A grant of ours, as the lease id spells it. */
interface Grant {
  readonly uri: string;
  /** Names this grant and no other. */
  readonly holder: string;
  readonly version: LeaseVersion | null;
}

type Failed = { readonly kind: 'failed'; readonly error: string };
type Read = { readonly kind: 'read'; readonly lease: ResourceLease | null } | Failed;
type Written =
  | { readonly kind: 'written'; readonly version: LeaseVersion | null; readonly expiresInMs: number | null }
  | { readonly kind: 'conflict' }
  | Failed;

/**
 * Claims of the resource style: the item is a resource that carries its own lease, which is changed
 * by compare-and-set alone. Any number of holders with any clocks may meet at one resource: of those
 * that saw one version, the server lets one through (invariant 2). No method rejects.
 *
 * Each grant is held under a name of its own, so a write whose answer was lost is recognised when the
 * resource is read again, and a call that is late by a whole grant touches nothing.
 */
export class ResourceLeases implements LeaseCalls {
  private grants = 0;
  private readonly foreign: ForeignLeases;
  /**
   * The version each open grant is known to have. A renewal moves it while the lease id stays. It
   * saves a round trip and decides nothing: without an entry the write conflicts and is read again.
   */
  private readonly versions = new BoundedMap<LeaseVersion | null>();

  constructor(private readonly options: ResourceLeasesOptions) {
    this.foreign = new ForeignLeases(options.clock);
  }

  async claim(target: ClaimTarget, deadlineMs: number): Promise<ClaimReply> {
    const left = this.deadline(deadlineMs);
    const seen = await this.read(target, left());
    if (seen.kind === 'failed') return seen;
    const { lease } = seen;
    const place = `${target.server}\u0000${target.item}`;
    if (lease !== null && this.isFinal(lease)) return { kind: 'lost', heldBy: lease.holder };
    // What we hold ourselves was granted to an earlier try of this claim, whose answer was lost.
    if (lease !== null && !this.isOurs(lease, target)) {
      const retryAfterMs = this.foreign.overIn(place, lease, target.ttlMs);
      if (retryAfterMs > 0) return { kind: 'lost', heldBy: lease.holder, retryAfterMs };
    }
    const holder = `${this.prefix(target)}${++this.grants}`;
    const wanted = { holder, expires_in_ms: target.ttlMs };
    const written = await this.write(target, lease?.version ?? null, wanted, left());
    if (written.kind === 'failed') return written;
    if (written.kind === 'conflict') return { kind: 'lost', heldBy: '<unknown>' };
    this.foreign.forget(place);
    const leaseId = leaseIdOf({ uri: target.item, holder, version: written.version });
    this.versions.set(leaseId, written.version);
    return { kind: 'granted', leaseId, expiresInMs: written.expiresInMs ?? target.ttlMs, fencingToken: null };
  }

  async renew(target: ClaimTarget, leaseId: string, deadlineMs: number): Promise<LeaseReply> {
    const lease = (holder: string) => ({ holder, expires_in_ms: target.ttlMs });
    const reply = await this.change(target, leaseId, lease, deadlineMs);
    return reply.kind === 'ok' ? { kind: 'ok', expiresInMs: reply.expiresInMs ?? target.ttlMs } : reply;
  }

  async ack(target: ClaimTarget, leaseId: string, result: string, deadlineMs: number): Promise<LeaseReply> {
    const lease = (holder: string) => ({ holder: HELD_BY_ACKED, acked_by: holder, result });
    const done = (found: ResourceLease | null, grant: Grant): boolean =>
      found?.holder === HELD_BY_ACKED && found.acked_by === grant.holder;
    return this.settle(target, leaseId, lease, deadlineMs, done);
  }

  async release(target: ClaimTarget, leaseId: string, _: string, deadlineMs: number): Promise<LeaseReply> {
    // A free resource is what was wanted, whoever freed it.
    return this.settle(
      target,
      leaseId,
      () => null,
      deadlineMs,
      (found) => found === null,
    );
  }

  private async settle(
    target: ClaimTarget,
    leaseId: string,
    lease: (holder: string) => Record<string, unknown> | null,
    deadlineMs: number,
    done: (found: ResourceLease | null, grant: Grant) => boolean,
  ): Promise<LeaseReply> {
    const reply = await this.change(target, leaseId, lease, deadlineMs, done);
    if (reply.kind !== 'failed') this.versions.delete(leaseId);
    return reply.kind === 'ok' ? { kind: 'ok' } : reply;
  }

  /**
   * Changes a lease of ours. A conflict alone proves nothing, since an earlier write of ours may have
   * arrived without its answer: only a resource that somebody else holds is a refusal.
   */
  private async change(
    target: ClaimTarget,
    leaseId: string,
    lease: (holder: string) => Record<string, unknown> | null,
    deadlineMs: number,
    done: (found: ResourceLease | null, grant: Grant) => boolean = () => false,
  ): Promise<{ kind: 'ok'; expiresInMs: number | null } | { kind: 'refused' } | Failed> {
    const grant = grantOf(leaseId);
    if (grant === null) return { kind: 'refused' };
    const left = this.deadline(deadlineMs);
    const wanted = lease(grant.holder);
    let version = this.versions.get(leaseId) ?? grant.version;
    for (let conflicts = 0; ; conflicts++) {
      const written = await this.write(target, version, wanted, left());
      if (written.kind === 'failed') return written;
      if (written.kind === 'written') {
        this.versions.set(leaseId, written.version);
        return { kind: 'ok', expiresInMs: written.expiresInMs };
      }
      const seen = await this.read(target, left());
      if (seen.kind === 'failed') return seen;
      if (done(seen.lease, grant)) return { kind: 'ok', expiresInMs: null };
      if (seen.lease?.holder !== grant.holder) return { kind: 'refused' };
      if (conflicts > 0)
        return { kind: 'failed', error: `${LEASE_CAS}: the lease changes faster than it can be read` };
      version = seen.lease.version;
    }
  }

  private async read(target: ClaimTarget, timeoutMs: number): Promise<Read> {
    const what = `reading ${target.item}`;
    const peer = this.options.peers.get(target.server, target.claimKey);
    if (peer === undefined) return failed(what, `no MCP server is named ${target.server}`);
    try {
      const { text } = await peer.readResource(target.item, { timeoutMs, meta: this.meta(target) });
      const lease = leaseIn(text);
      if (lease === 'unreadable') return failed(what, 'its body is not JSON that can carry a lease');
      return { kind: 'read', lease };
    } catch (error) {
      return failed(what, errorMessage(error));
    }
  }

  private async write(
    target: ClaimTarget,
    expected: LeaseVersion | null,
    lease: Record<string, unknown> | null,
    timeoutMs: number,
  ): Promise<Written> {
    const peer: Peer | undefined = this.options.peers.get(target.server, target.claimKey);
    if (peer === undefined) return failed(LEASE_CAS, `no MCP server is named ${target.server}`);
    const args = { uri: target.item, expect_version: expected, lease };
    let result: CallResult;
    try {
      result = await peer.callTool(LEASE_CAS, args, { timeoutMs, meta: this.meta(target) });
    } catch (error) {
      return failed(LEASE_CAS, errorMessage(error));
    }
    if (result.isError) return failed(LEASE_CAS, result.text.slice(0, 400) || 'the server reports an error');
    const answer = casResult.safeParse(payload(result));
    if (!answer.success) return failed(LEASE_CAS, 'the answer does not have the shape of the contract');
    const { ok, version, expires_in_ms: expiresInMs } = answer.data;
    if (!ok) return { kind: 'conflict' };
    return { kind: 'written', version: version ?? null, expiresInMs: expiresInMs ?? null };
  }

  private meta({ claimKey, traceparent }: ClaimTarget): Record<string, string> {
    const { instance, shard } = this.options;
    return {
      [META.CLAIM_KEY]: claimKey,
      [META.INSTANCE]: instance,
      ...(shard === null ? {} : { [META.SHARD]: shard }),
      [META.TRACEPARENT]: traceparent,
    };
  }

  private isFinal({ holder }: ResourceLease): boolean {
    return holder === HELD_BY_ACKED || holder === HELD_BY_DEAD_LETTER;
  }

  private isOurs({ holder }: ResourceLease, target: ClaimTarget): boolean {
    return holder.startsWith(this.prefix(target));
  }

  private prefix(target: ClaimTarget): string {
    return `${this.options.instance}/${target.claimKey}/`;
  }

  /** What is left of a budget that begins now, ms; one call after another shares it. */
  private deadline(budgetMs: number): () => number {
    const end = this.options.clock.now() + budgetMs;
    return () => Math.max(1, end - this.options.clock.now());
  }
}

function leaseIdOf({ uri, holder, version }: Grant): string {
  return JSON.stringify([uri, holder, version]);
}

function grantOf(leaseId: string): Grant | null {
  try {
    const [uri, holder, version] = JSON.parse(leaseId) as [string, string, LeaseVersion | null];
    return { uri, holder, version };
  } catch {
    return null;
  }
}

function failed(what: string, reason: string): Failed {
  return { kind: 'failed', error: `${what}: ${reason}` };
}
