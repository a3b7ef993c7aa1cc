import type { RunEnd } from './agent-run.ts';
import {
  DEFAULT_GOVERNOR,
  GOVERNOR_START,
  type Governor,
  type GovernorConfig,
  governorStep,
} from './restart-governor.ts';

/**
 * The breaker for starts as such. A probe costs one process, and an instance that does not know that
 * its machine has recovered does nothing: so it asks sooner than one that meets a failing program.
 */
export const START_GOVERNOR: GovernorConfig = { ...DEFAULT_GOVERNOR, coolMs: 10_000 };

/**
 * Whether this machine can start children at all: the restart governor, fed with every child that
 * ended before it was ready, whoever it was for. While its breaker is open nothing is started but a
 * probe, and nothing should be claimed (design: a reaction needs a child before it needs an owner).
 */
export class StartGate {
  private governor: Governor = GOVERNOR_START;
  private lastError = '';

  constructor(
    private readonly random: () => number,
    private readonly config: GovernorConfig = START_GOVERNOR,
  ) {}

  /** Whether children can be started, as far as is known. */
  get able(): boolean {
    return this.governor.name === 'closed' || this.governor.name === 'backing_off';
  }

  /** What the last child that did not come up ended of. */
  get reason(): string {
    return this.lastError;
  }

  /** When asking again may help, monotonic ms; null when the probe that is out will tell. */
  get until(): number | null {
    return 'until' in this.governor ? this.governor.until : null;
  }

  /** May a child be started that no run waits for? When the breaker is open: the one probe. */
  ask(now: number): boolean {
    const { state, effects } = governorStep(this.governor, { type: 'ask', now }, this.config);
    this.governor = state;
    return effects.includes('allow');
  }

  /** A child ended before it was ready, or could not be started at all. */
  failed(now: number, end: RunEnd): void {
    this.lastError = end.error?.message ?? 'the child ended before it was ready';
    const event = { type: 'failed', now, beforeReady: true, random: this.random() } as const;
    this.governor = governorStep(this.governor, event, this.config).state;
  }

  /** A child came up: starting works, whatever failed before. */
  cameUp(): void {
    this.governor = GOVERNOR_START;
  }
}
