import type { ChildTimings } from './child-port.ts';
import { DEFAULT_LADDER_TIMINGS } from './kill-ladder.ts';

export interface SupervisorTimings extends ChildTimings {
  /** Between two goes of starting children, ms. */
  readonly spawnSlotMs: number;
  /** Between two samples of what children use, ms. */
  readonly usageMs: number;
}

/** Contract, section 12. All in ms. */
export const DEFAULT_TIMINGS: SupervisorTimings = {
  ...DEFAULT_LADDER_TIMINGS,
  tickMs: 1_000,
  lateMs: 2_000,
  pingMs: 5_000,
  pingMisses: 3,
  noProgressMs: 120_000,
  readyMs: 2_000,
  firstReadyMs: 10_000,
  exitGraceMs: 2_000,
  deadlineSlackMs: 2_000,
  pipeDrainMs: 500,
  spawnSlotMs: 20,
  usageMs: 2_000,
};
