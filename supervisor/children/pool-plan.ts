/** How many children to start now. Pure. */

export interface PoolView {
  /** Runs without a child. */
  readonly waiting: number;
  /** Idle children. */
  readonly ready: number;
  readonly startingForRuns: number;
  readonly startingWarm: number;
  /** Idle children wanted. */
  readonly target: number;
  readonly maxStarting: number;
  /** Starts left in this slot of time. */
  readonly slotLeft: number;
}

export interface PoolPlan {
  readonly forRuns: number;
  readonly warm: number;
  /** More is wanted and the slot alone stands in the way. */
  readonly later: boolean;
}

/** Runs come before warmth; starts are spread over time and never crowd each other. */
export function planSpawns(view: PoolView): PoolPlan {
  const wantedForRuns = Math.max(0, view.waiting - view.startingForRuns);
  const wantedWarm = Math.max(0, view.target - view.ready - view.startingWarm);
  const room = Math.max(0, view.maxStarting - view.startingForRuns - view.startingWarm);
  const allowed = Math.max(0, Math.min(room, view.slotLeft));
  const forRuns = Math.min(wantedForRuns, allowed);
  const warm = Math.min(wantedWarm, allowed - forRuns);
  const wanted = wantedForRuns + wantedWarm;
  return { forRuns, warm, later: forRuns + warm < Math.min(wanted, room) };
}
