import type { ClaimConfig, RouteConfig } from '../config/config.ts';
import { claimTarget } from '../gates/claim-target.ts';
import type { ClaimTarget, LeaseKeeper } from '../gates/lease-keeper.ts';
import type { LeaseEnd } from '../gates/lease-model.ts';

/** A session's lease, from its claim until both it and the child are gone. */
interface Held {
  readonly session: string;
  readonly target: ClaimTarget;
  child: 'none' | 'running' | 'gone';
  leaseEnded: boolean;
}

/**
 * The leases of warm sessions on claim routes: one for each session, held for as long as its child
 * lives. It is never acked, since a session is never done, and giving it back costs no attempt.
 */
export class SessionClaims {
  private readonly held = new Map<string, Held>();

  constructor(
    private readonly keeper: Pick<LeaseKeeper, 'offer' | 'notCompleted'>,
    private readonly traceparent: () => string,
  ) {}

  owns(id: string): boolean {
    return this.held.has(id);
  }

  sessionOf(id: string): string | null {
    return this.held.get(id)?.session ?? null;
  }

  /** Whether an earlier lease or child of the session is still on its way out. */
  isLeaving(session: string): boolean {
    return [...this.held.values()].some((one) => one.session === session);
  }

  /** What a session is claimed as: the same on every replica. */
  targetOf(session: string, route: RouteConfig, claim: ClaimConfig): { runId: string; target: ClaimTarget } {
    const item = {
      server: route.server ?? '',
      uri: `agent://session/${session}`,
      route: route.name,
      info: null,
    };
    return claimTarget({ ...claim, key: 'run_id' }, item, this.traceparent());
  }

  claim(session: string, runId: string, target: ClaimTarget): void {
    this.held.set(runId, { session, target, child: 'none', leaseEnded: false });
    this.keeper.offer(runId, target);
  }

  opened(runId: string): void {
    const held = this.held.get(runId);
    if (held !== undefined) held.child = 'running';
  }

  /** The child has gone: its lease is given back. */
  childGone(runId: string, reason: 'drain' | 'capacity: the session ended'): void {
    const held = this.held.get(runId);
    if (held === undefined) return;
    held.child = 'gone';
    if (held.leaseEnded) this.held.delete(runId);
    else this.keeper.notCompleted(runId, reason);
  }

  /** A grant that is of no use: a drain began, or the session is gone from the configuration. */
  giveBack(runId: string): void {
    this.keeper.notCompleted(runId, 'drain');
  }

  /** The lease is over; the target when the session was still waiting for it. */
  leaseEnded(runId: string, _end: LeaseEnd): ClaimTarget | null {
    const held = this.held.get(runId);
    if (held === undefined) return null;
    held.leaseEnded = true;
    if (held.child !== 'running') this.held.delete(runId);
    return held.child === 'none' ? held.target : null;
  }
}
