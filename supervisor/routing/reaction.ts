import type { Children, RunOutcome, RunSpec } from '../children/run.ts';
import type { InstanceGate } from '../gates/admission-gate.ts';
import type { LeaseKeeper } from '../gates/lease-keeper.ts';
import type { LeaseEnd } from '../gates/lease-model.ts';
import type { ResourceInfo } from '../mcp/peers.ts';
import type { Clock } from '../reactor/clock.ts';
import type { SupervisorEvent } from '../reactor/event.ts';
import type { Timers } from '../reactor/timers.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { type Lane, splitDeliveryKey } from './intake.ts';

/** One reaction between its queue and its end: described → claimed → run → settled. */
export interface Reaction {
  readonly id: string;
  readonly lane: Lane;
  readonly key: string;
  readonly server: string;
  readonly uri: string;
  /** Monotonic ms at which the update was heard. */
  readonly since: number;
  /** The context of its claim and of its run. */
  readonly traceparent: string;
  stage: 'claiming' | 'running' | 'settling';
  claimed: boolean;
  /** The ledger chose it: when it does not complete, the ledger will choose again. */
  pulled: boolean;
  outcome: RunOutcome | null;
  lease: LeaseEnd | null;
}

export interface ReactionDeps {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly children: Pick<Children, 'launch' | 'stop' | 'active'>;
  readonly keeper: Pick<LeaseKeeper, 'offer' | 'adopt' | 'giveBack' | 'completed' | 'notCompleted'>;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly post: (event: SupervisorEvent) => void;
  readonly random: () => number;
  readonly newRunId: () => string;
  readonly traceparent: () => string;
  /** The run of one update on a lane. */
  readonly spec: (
    lane: Lane,
    run: { runId: string; server: string; uri: string; traceparent: string },
  ) => RunSpec;
  /** Looks at a resource, for claim keys that depend on it; bounded, rejects when it cannot. */
  readonly describe: (server: string, uri: string) => Promise<ResourceInfo | null>;
  readonly gate: () => InstanceGate;
  /** Runs at once in the whole supervisor. */
  readonly maxTotal: () => number;
}

/** A reaction at its beginning. */
export function newReaction(
  id: string,
  lane: Lane,
  key: string,
  since: number,
  stage: Reaction['stage'],
  traceparent: string,
  pulled = false,
): Reaction {
  const { server, uri } = splitDeliveryKey(key);
  return {
    id,
    lane,
    key,
    server,
    uri,
    since,
    stage,
    traceparent,
    claimed: false,
    pulled,
    outcome: null,
    lease: null,
  };
}

/** Whether no child ever had the run: it could not be started, or ended before it was ready. */
export function neverBegan({ cause }: Pick<RunOutcome, 'cause'>): boolean {
  return cause === 'spawn_failed' || cause === 'not_ready';
}

/** The first word tells the ledger whether an attempt was spent: a drain, or a run that never began, spends none. */
export function releaseReason(outcome: RunOutcome, draining: boolean): string {
  const { cause, status } = outcome;
  // A run that was told to wind down stops by itself at the end of its turn: nobody stopped it, and it did not fail.
  const woundDown = draining && cause === null && status === 'cancelled';
  if (woundDown || cause === 'drain' || cause === 'forced') return 'drain';
  const detail = outcome.error === null ? '' : `: ${outcome.error.message.slice(0, 500)}`;
  // A machine that cannot start children must not use up the attempts of good items.
  if (neverBegan(outcome)) return `not_started${detail}`;
  return `${status}${detail}`;
}
