import type { Clock } from '../reactor/clock.ts';
import {
  type BreakerEvent,
  type BreakerState,
  breakerStep,
  CLOSED,
  type FailureReason,
  isDown,
  isUsable,
} from './breaker-machine.ts';
import { RollingFigures } from './rolling-figures.ts';

/** One model call as a child reported it, its endpoint by its place in the configuration. */
export interface ModelCall {
  readonly endpoint: number;
  readonly ok: boolean;
  readonly reason?: FailureReason | undefined;
  readonly durMs: number;
  readonly tokensIn: number;
  readonly tokensOut: number;
}

/** An endpoint was given up, or came back. */
export interface EndpointChange {
  readonly endpoint: number;
  readonly to: 'opened' | 'closed';
}

/** `agent://intelligence`, and what the metrics need. Endpoints by number: never an address. */
export interface IntelligenceSnapshot {
  readonly all_down: boolean;
  readonly endpoints: readonly {
    readonly index: number;
    readonly state: BreakerState['state'];
    readonly retry_in_ms: number | null;
  }[];
  /** Null while there was no successful call within the last minute. */
  readonly latency_ms: { readonly p50: number; readonly p95: number } | null;
  readonly tokens_per_sec: number;
}

/** The endpoints of a run in the order to try them, and where each stands in the configuration. */
export interface Arranged<T> {
  readonly items: readonly T[];
  /** `configured[i]` is the place of `items[i]` in the configuration. */
  readonly configured: readonly number[];
}

/** What all children together know about the model endpoints. */
export class IntelligenceHealth {
  private breakers: BreakerState[];
  private readonly figures = new RollingFigures();
  /** A call succeeded, and they have not all been down since. */
  private worked = false;

  /** @param endpoints how many are configured, in order of preference */
  constructor(
    endpoints: number,
    private readonly clock: Clock,
  ) {
    this.breakers = Array(endpoints).fill(CLOSED);
  }

  /** Takes in one call; what changed is for the log and for readiness. */
  record(call: ModelCall): EndpointChange | null {
    const now = this.clock.now();
    this.figures.add(now, call.ok ? call.durMs : null, call.tokensIn + call.tokensOut);
    const event: BreakerEvent = call.ok
      ? { type: 'succeeded' }
      : { type: 'failed', reason: call.reason ?? 'other' };
    const [to] = this.step(call.endpoint, event, now);
    const known = this.breakers[call.endpoint] !== undefined;
    this.worked = (known && call.ok) || (this.worked && !this.allDown);
    return to === undefined ? null : { endpoint: call.endpoint, to };
  }

  /**
   * The endpoints for the next run: those that work in the configured order, one that is due for a
   * trial in its own place, those known to be down last, soonest retry first. None is left out: when
   * all are down a run may as well try.
   */
  arrange<T>(items: readonly T[]): Arranged<T> {
    const now = this.clock.now();
    const usable: number[] = [];
    const avoided: { readonly index: number; readonly until: number }[] = [];
    for (const index of items.keys()) {
      const state = this.breakers[index] ?? CLOSED;
      if (isUsable(state, now)) usable.push(index);
      else avoided.push({ index, until: state.state === 'closed' ? 0 : state.until });
      this.step(index, { type: 'offered' }, now);
    }
    avoided.sort((a, b) => a.until - b.until);
    const configured = [...usable, ...avoided.map(({ index }) => index)];
    return { configured, items: configured.flatMap((index) => items.slice(index, index + 1)) };
  }

  /** Place of the first endpoint that works, as far as is known; 0 when none does. */
  get preferred(): number {
    const now = this.clock.now();
    return Math.max(
      0,
      this.breakers.findIndex((state) => isUsable(state, now)),
    );
  }

  /** True when there are endpoints and every one is known not to work. */
  get allDown(): boolean {
    const now = this.clock.now();
    return this.breakers.length > 0 && this.breakers.every((state) => isDown(state, now));
  }

  /** False when all are down, true once a call has succeeded; until then nobody knows. */
  get healthy(): boolean | 'unknown' {
    if (this.allDown) return false;
    return this.worked ? true : 'unknown';
  }

  /** The endpoints were configured anew: nothing is known about them. */
  reset(endpoints: number): void {
    this.breakers = Array(endpoints).fill(CLOSED);
    this.worked = false;
  }

  snapshot(): IntelligenceSnapshot {
    const now = this.clock.now();
    return {
      all_down: this.allDown,
      endpoints: this.breakers.map((state, index) => ({
        index,
        state: state.state,
        retry_in_ms: state.state === 'open' ? Math.max(0, Math.round(state.until - now)) : null,
      })),
      latency_ms: this.figures.latency(now),
      tokens_per_sec: this.figures.tokensPerSecond(now),
    };
  }

  private step(endpoint: number, event: BreakerEvent, now: number): readonly ('opened' | 'closed')[] {
    const state = this.breakers[endpoint];
    // A child of the configuration before a reload may name one that is gone.
    if (state === undefined) return [];
    const next = breakerStep(state, event, now);
    this.breakers[endpoint] = next.state;
    return next.effects;
  }
}
