import type { Clock } from '../../supervisor/reactor/clock.ts';

/** A clock that moves only when told. */
export class ManualClock implements Clock {
  constructor(
    private monotonic = 0,
    private epoch = 1_800_000_000_000,
  ) {}

  now(): number {
    return this.monotonic;
  }

  wall(): number {
    return this.epoch;
  }

  /** Moves both readings forward by `ms`. */
  advance(ms: number): void {
    this.monotonic += ms;
    this.epoch += ms;
  }

  /** Steps the wall clock alone, as an administrator or NTP would. */
  stepWall(ms: number): void {
    this.epoch += ms;
  }
}
