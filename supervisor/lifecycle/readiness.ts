/** What readiness is decided from. */
export interface ReadinessFacts {
  readonly phase: 'starting' | 'running' | 'draining';
  /** Shown, but no reason: a paused instance keeps its work and is not replaced. */
  readonly paused: boolean;
  readonly lameDuck: boolean;
  readonly intelligenceAllDown: boolean;
  /** No child can be started, so nothing can be worked on. */
  readonly cannotSpawn: boolean;
  /** Servers with a subscription that is not in force. */
  readonly deaf: readonly string[];
}

export type UnreadyReason =
  | 'starting'
  | 'draining'
  | 'lame_duck'
  | 'intelligence_down'
  | 'cannot_spawn'
  | 'deaf_subscription';

/** The body of `/readyz`, but for what the health thread adds. */
export interface Readiness {
  readonly ready: boolean;
  /** Empty exactly when ready. */
  readonly reasons: readonly UnreadyReason[];
  readonly paused: boolean;
  readonly deaf_servers: readonly string[];
}

/**
 * Whether the instance is ready for work, and if not, every reason why (contract, section 11). An
 * instance that cannot hear updates is not ready: deaf but green is the worst state there is.
 */
export function readinessOf(facts: ReadinessFacts): Readiness {
  const reasons: UnreadyReason[] = [];
  if (facts.phase !== 'running') reasons.push(facts.phase);
  if (facts.lameDuck) reasons.push('lame_duck');
  if (facts.intelligenceAllDown) reasons.push('intelligence_down');
  if (facts.cannotSpawn) reasons.push('cannot_spawn');
  if (facts.deaf.length > 0) reasons.push('deaf_subscription');
  return { ready: reasons.length === 0, reasons, paused: facts.paused, deaf_servers: [...facts.deaf] };
}

/** How an instance stands, for operators. */
export interface Standing {
  readonly phase: ReadinessFacts['phase'];
  readonly paused: boolean;
  readonly lame_duck: boolean;
  readonly draining: boolean;
}

/** Before the supervisor has said anything. */
export const STARTING: Readiness = readinessOf({
  phase: 'starting',
  paused: false,
  lameDuck: false,
  intelligenceAllDown: false,
  cannotSpawn: false,
  deaf: [],
});
