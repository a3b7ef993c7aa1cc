/** May a reaction start now? Everything that bounds work is asked here, in one place. */

/** What holds for the whole instance. */
export interface InstanceGate {
  /** Connections are still being made: a start that fails must not hold anything. */
  readonly starting: boolean;
  readonly draining: boolean;
  readonly paused: boolean;
  readonly lameDuck: boolean;
  /** This machine can start no children now; another replica may. */
  readonly cannotSpawn: boolean;
  /** Tokens left of the lifetime budget; null: unbounded. */
  readonly budgetRemaining: number | null;
}

export interface AdmissionState extends InstanceGate {
  /** Reactions of the route being claimed, running or settling. */
  readonly routeInflight: number;
  readonly routeMaxInflight: number;
  /** Subagents running in the whole tree. */
  readonly active: number;
  readonly maxTotal: number;
}

export type Admission =
  | { readonly kind: 'admit' }
  | {
      readonly kind: 'wait';
      readonly reason:
        | 'starting'
        | 'draining'
        | 'paused'
        | 'lame_duck'
        | 'cannot_spawn'
        | 'route_full'
        | 'total_full'
        | 'budget';
    };

/** A refused event stays queued: backpressure is visible as backlog and nothing is lost. */
export function admit(state: AdmissionState): Admission {
  if (state.draining) return { kind: 'wait', reason: 'draining' };
  if (state.starting) return { kind: 'wait', reason: 'starting' };
  if (state.paused) return { kind: 'wait', reason: 'paused' };
  if (state.lameDuck) return { kind: 'wait', reason: 'lame_duck' };
  if (state.cannotSpawn) return { kind: 'wait', reason: 'cannot_spawn' };
  if (state.budgetRemaining !== null && state.budgetRemaining <= 0) return { kind: 'wait', reason: 'budget' };
  if (state.routeInflight >= state.routeMaxInflight) return { kind: 'wait', reason: 'route_full' };
  if (state.active >= state.maxTotal) return { kind: 'wait', reason: 'total_full' };
  return { kind: 'admit' };
}

/** What capacity is worth: min(Σ max_inflight, max_total_subagents). */
export function capacityOf(maxInflight: readonly number[], maxTotal: number): number {
  return Math.min(
    maxInflight.reduce((sum, one) => sum + one, 0),
    maxTotal,
  );
}
