import type { Children, RunOutcome, RunSpec } from '../children/run.ts';
import type { RouteConfig } from '../config/config.ts';
import type { LeaseEnd } from '../gates/lease-model.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { revisitIn } from './disposal.ts';
import { type Intake, type Lane, splitDeliveryKey } from './intake.ts';
import { neverBegan } from './reaction.ts';
import type { SessionClaims } from './session-claims.ts';
import {
  CLOSED,
  type RestartVerdict,
  type SessionEffect,
  type SessionEvent,
  type SessionState,
  stepSession,
} from './session-machine.ts';

/** Judges failures of one session: backoff, or a breaker that opens. */
export interface Governor {
  failed(now: number, beforeReady: boolean): RestartVerdict;
  succeeded(now: number): void;
}

export interface SessionDeps {
  readonly clock: Clock;
  readonly children: Pick<Children, 'launch' | 'wake' | 'stop' | 'canStart'>;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly newRunId: () => string;
  readonly newGovernor: () => Governor;
  readonly spec: (lane: Lane, session: string, runId: string) => RunSpec;
  readonly mayStart: () => boolean;
  readonly claims: SessionClaims;
  /** An item held elsewhere is to be looked at again at `at`, monotonic ms. */
  readonly revisit: (server: string, uri: string, at: number) => void;
  /** In [0, 1): spreads retries. */
  readonly random: () => number;
}

export interface SessionView {
  readonly session: string;
  readonly state: SessionState['state'];
  readonly runId: string | null;
  /** Wakes given to its present child. */
  readonly wakes: number;
}

interface Session {
  readonly name: string;
  readonly governor: Governor;
  /** Delivery key → the lane it came from. */
  readonly lanes: Map<string, Lane>;
  state: SessionState;
  /** The route its present child was started for. */
  route: RouteConfig | null;
  /** The route its lease was asked for. */
  claimedFor: RouteConfig | null;
  /** That route is no longer what it was: the child goes after its turn. */
  outdated: boolean;
}

/** The warm sessions of all `continue` routes. Several routes may share one session. */
export class Sessions {
  private readonly sessions = new Map<string, Session>();
  private readonly byRun = new Map<string, Session>();

  constructor(
    private readonly intake: Pick<Intake, 'lanes'>,
    private readonly deps: SessionDeps,
  ) {}

  owns(runId: string): boolean {
    return this.byRun.has(runId) || this.deps.claims.owns(runId);
  }

  /** For operators: which sessions there are and how they fare. */
  list(): readonly SessionView[] {
    return [...this.sessions.values()].map(({ name, state }) => ({
      session: name,
      state: state.state,
      runId: 'runId' in state ? state.runId : null,
      wakes: 'wakes' in state ? state.wakes : 0,
    }));
  }

  /** Wakes every session that has updates waiting and is not in a turn. */
  pump(): void {
    if (!this.deps.mayStart()) return;
    for (const lane of this.intake.lanes) {
      const { disposition } = lane.route.config;
      if (disposition.kind !== 'continue') continue;
      const session = this.session(disposition.session);
      if (session.state.state === 'turning' || session.state.state === 'claiming') continue;
      // One that has its child goes on; another is not claimed, so that a replica may have it.
      if (session.state.state !== 'idle' && !this.deps.children.canStart) continue;
      // A session is claimed anew only when its former child and lease are gone.
      if (session.state.state !== 'idle' && this.deps.claims.isLeaving(session.name)) continue;
      const keys = this.take(lane, session);
      if (keys.length === 0) continue;
      const { claim } = lane.route.config;
      const newRunId =
        claim === null
          ? this.deps.newRunId()
          : this.deps.claims.targetOf(session.name, lane.route.config, claim).runId;
      this.step(session, { type: 'updates', keys, newRunId, claim: claim !== null }, lane);
    }
  }

  /** The session is ours for as long as its lease is renewed. */
  onLeaseStart(runId: string): void {
    const session = this.sessions.get(this.deps.claims.sessionOf(runId) ?? '');
    const lane = this.intake.lanes.find(({ route: { config } }) => config === session?.claimedFor);
    const { mayStart, children } = this.deps;
    if (session === undefined || lane === undefined || !mayStart() || !children.canStart) {
      this.deps.claims.giveBack(runId);
      return;
    }
    this.step(session, { type: 'claimed', runId }, lane);
  }

  onLeaseStop(runId: string, cause: 'lease_lost' | 'lease_expired', withinMs: number): void {
    this.deps.children.stop(runId, cause, withinMs);
  }

  onLeaseEnded(runId: string, end: LeaseEnd): void {
    const session = this.sessions.get(this.deps.claims.sessionOf(runId) ?? '');
    const target = this.deps.claims.leaseEnded(runId, end);
    if (session === undefined || target === null) return;
    const at = this.deps.clock.now() + revisitIn(target.ttlMs, end, this.deps.random());
    this.step(session, { type: 'unclaimed', runId, elsewhere: end.kind === 'lost', at });
  }

  onTurn(runId: string): void {
    const session = this.byRun.get(runId);
    if (session === undefined) return;
    session.governor.succeeded(this.deps.clock.now());
    this.step(session, { type: 'turned', runId });
    this.renew(session);
  }

  /**
   * Sessions whose child was started for an outdated route go on with a new child: at once, or after
   * the turn they are in. The new one remembers nothing of the old.
   */
  outdate(isOutdated: (route: RouteConfig) => boolean): void {
    for (const session of this.sessions.values()) {
      session.outdated ||= session.route !== null && isOutdated(session.route);
      this.renew(session);
    }
  }

  /** The session's child is gone: its turn is made again by the next one, or refused. */
  onSettled(outcome: RunOutcome, draining: boolean): void {
    this.deps.claims.childGone(outcome.runId, draining ? 'drain' : 'capacity: the session ended');
    const session = this.byRun.get(outcome.runId);
    if (session === undefined) return;
    this.byRun.delete(outcome.runId);
    const unstartable = neverBegan(outcome) && !this.deps.children.canStart;
    if (outcome.cause === 'lease_lost' || outcome.cause === 'lease_expired' || unstartable) {
      // Not its fault: another replica goes on with the session, or we do when children start again.
      const verdict = { kind: 'retry', at: this.deps.clock.now() } as const;
      this.step(session, { type: 'ended', runId: outcome.runId, verdict });
      return;
    }
    if (draining) {
      this.step(session, { type: 'close' });
      return;
    }
    const verdict = session.governor.failed(this.deps.clock.now(), outcome.cause === 'not_ready');
    const reason = outcome.cause === 'no_progress' || outcome.cause === 'wedged' ? 'stuck' : 'crashed';
    this.deps.metrics.add('agent_subagent_restarts_total', { reason });
    if (verdict.kind === 'open') {
      this.deps.metrics.add('agent_restarts_tripped_total');
      this.deps.metrics.add('agent_limit_exceeded_total', { limit: 'restart_storm' });
      this.deps.log.error('limit.exceeded', {
        limit: 'restart_storm',
        session: session.name,
        msg: `session ${session.name} keeps failing: its events are refused until the breaker half-opens`,
      });
    } else this.deps.log.warn('subagent.restart', { session: session.name, reason });
    this.step(session, { type: 'ended', runId: outcome.runId, verdict });
  }

  private renew(session: Session): void {
    if (session.outdated) this.step(session, { type: 'renew' });
    const { state, name } = session;
    const wanted = this.intake.lanes.some(
      ({ route: { config } }) =>
        config.disposition.kind === 'continue' && config.disposition.session === name,
    );
    if (!wanted && (state.state === 'closed' || state.state === 'broken')) this.sessions.delete(name);
  }

  private session(name: string): Session {
    let session = this.sessions.get(name);
    if (session === undefined) {
      session = {
        name,
        governor: this.deps.newGovernor(),
        lanes: new Map(),
        state: CLOSED,
        route: null,
        claimedFor: null,
        outdated: false,
      };
      this.sessions.set(name, session);
    }
    return session;
  }

  private take(lane: Lane, session: Session): string[] {
    const keys: string[] = [];
    for (;;) {
      const next = lane.queue.next(this.deps.clock.now());
      if (next === null) return keys;
      lane.queue.begin(next.uri);
      session.lanes.set(next.uri, lane);
      keys.push(next.uri);
    }
  }

  private step(session: Session, event: SessionEvent, lane?: Lane): void {
    const step = stepSession(session.state, event, this.deps.clock.now());
    session.state = step.state;
    for (const effect of step.effects) this.apply(session, effect, lane);
  }

  private apply(session: Session, effect: SessionEffect, lane: Lane | undefined): void {
    const { children, clock, metrics, log } = this.deps;
    switch (effect.type) {
      case 'claim': {
        const claim = lane?.route.config.claim;
        if (lane === undefined || claim == null) return;
        session.claimedFor = lane.route.config;
        const { target } = this.deps.claims.targetOf(session.name, lane.route.config, claim);
        this.deps.claims.claim(session.name, effect.runId, target);
        return;
      }
      case 'open':
        if (lane === undefined) return;
        this.deps.claims.opened(effect.runId);
        this.byRun.set(effect.runId, session);
        session.route = lane.route.config;
        session.outdated = false;
        children.launch(this.deps.spec(lane, session.name, effect.runId));
        return;
      case 'wake':
        metrics.add('agent_reactions_total');
        log.info('trigger.fired', {
          session: session.name,
          reaction: effect.runId,
          updates: effect.keys.length,
        });
        children.wake(
          effect.runId,
          effect.keys.map((key) => splitDeliveryKey(key).uri),
          [],
        );
        return;
      case 'dismiss':
        this.byRun.delete(effect.runId);
        children.stop(effect.runId, 'cancelled');
        return;
      case 'settle':
        for (const key of effect.keys) this.release(session, key)?.queue.settle(key, clock.now());
        return;
      case 'put_back':
        for (const key of effect.keys) this.release(session, key)?.queue.retry(key, effect.at);
        return;
      case 'revisit':
        for (const key of effect.keys) {
          this.release(session, key)?.queue.settle(key, clock.now());
          const { server, uri } = splitDeliveryKey(key);
          this.deps.revisit(server, uri, effect.at);
        }
        return;
      case 'refuse':
        metrics.add('agent_dropped_events_total', {}, effect.keys.length);
        log.warn('limit.exceeded', {
          limit: 'restart_storm',
          session: session.name,
          events: effect.keys.length,
          msg: `events for session ${session.name} are refused while it is broken`,
        });
        for (const key of effect.keys) this.release(session, key)?.queue.settle(key, clock.now());
    }
  }

  private release(session: Session, key: string): Lane | undefined {
    const lane = session.lanes.get(key);
    session.lanes.delete(key);
    return lane;
  }
}
