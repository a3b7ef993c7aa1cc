import type { Clock } from '../reactor/clock.ts';
import {
  type Liveness,
  type LivenessEffect,
  type LivenessEvent,
  type LivenessTimings,
  livenessStart,
  livenessStep,
} from './liveness.ts';

export interface DetectorHooks {
  ping(id: number): void;
  verdict(cause: Extract<LivenessEffect, { type: 'verdict' }>['cause']): void;
}

type Untimed<E> = E extends unknown ? Omit<E, 'now'> : never;
type Observation = Untimed<Exclude<LivenessEvent, { type: 'tick' }>>;

/** Feeds one child's liveness machine from the clock and carries its effects out. */
export class Detectors {
  private liveness: Liveness;
  private pings = 0;
  private suspended = false;

  constructor(
    private readonly clock: Clock,
    private timings: LivenessTimings,
    private readonly hooks: DetectorHooks,
  ) {
    this.liveness = livenessStart(clock.now(), clock.wall());
  }

  get state(): Liveness {
    return this.liveness;
  }

  /** How long the run it watches from here on may show no progress, ms. */
  allowSilence(noProgressMs: number): void {
    this.timings = { ...this.timings, noProgressMs };
  }

  observe(event: Observation): void {
    this.step({ ...event, now: this.clock.now() });
  }

  /** A debugger may stop the process at any line: nothing is asked of it and nobody is judged any more. */
  suspend(): void {
    this.suspended = true;
  }

  /** Asks the detectors for a verdict. Called once a tick. */
  tick(): void {
    if (this.suspended) return;
    this.step({ type: 'tick', now: this.clock.now(), wall: this.clock.wall() });
  }

  private step(event: LivenessEvent): void {
    const { state, effects } = livenessStep(this.liveness, event, this.timings);
    this.liveness = state;
    for (const effect of effects) {
      if (effect.type === 'ping') this.hooks.ping(++this.pings);
      else this.hooks.verdict(effect.cause);
    }
  }
}
