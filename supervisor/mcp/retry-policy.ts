import { GOVERNOR_START, type Governor, governorStep } from '../children/restart-governor.ts';
import type { Clock } from '../reactor/clock.ts';
import { backoffMs, type RetryDecision, STABLE_MS } from './connection-machine.ts';

/** How the last attempt or connection ended. */
export interface EndedConnection {
  /** Failed attempts in a row, this one included. */
  readonly failures: number;
  /** How long it had been live before it was lost, ms; null when it never was. */
  readonly livedMs: number | null;
  readonly reason: string;
}

/** Decides whether and when a server is tried again. One per server; may remember what it saw. */
export interface RetryPolicy {
  decide(ended: EndedConnection): RetryDecision;
}

/** HTTP: for ever, with backoff. Somebody else restarts the server. */
export function retryForEver(random: () => number): RetryPolicy {
  return { decide: ({ failures }) => ({ kind: 'retry', delayMs: backoffMs(failures, random()) }) };
}

/**
 * stdio: as long as the restart governor allows. When its breaker opens, a required server is given
 * up; one that is not waits out the breaker and gets a probe.
 */
export function retryGoverned(clock: Clock, random: () => number, required: boolean): RetryPolicy {
  let governor: Governor = GOVERNOR_START;
  return {
    decide({ livedMs, reason }) {
      const now = clock.now();
      if (livedMs !== null && livedMs >= STABLE_MS) {
        governor = governorStep(governor, { type: 'succeeded', now }).state;
      }
      const beforeReady = livedMs === null;
      const failed = governorStep(governor, { type: 'failed', now, beforeReady, random: random() });
      if (failed.effects.includes('trip') && required) {
        return { kind: 'give_up', reason: `it does not stay up: ${reason}` };
      }
      const due = 'until' in failed.state ? failed.state.until : now;
      // The start that follows is the one the governor lets through then.
      governor = governorStep(failed.state, { type: 'ask', now: due }).state;
      return { kind: 'retry', delayMs: Math.max(0, due - now) };
    },
  };
}
