/**
 * Time, injected. Decisions about liveness, leases and deadlines use the monotonic reading, so a
 * clock step moves nothing; the wall reading is for timestamps people read.
 */
export interface Clock {
  /** Monotonic milliseconds since an arbitrary origin. */
  now(): number;
  /** Milliseconds since the Unix epoch. */
  wall(): number;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
};
