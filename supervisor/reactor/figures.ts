import type { Children } from '../children/run.ts';
import type { ConfigInForce } from '../config/in-force.ts';
import { capacityOf } from '../gates/admission-gate.ts';
import type { RootRuns } from '../lifecycle/root-runs.ts';
import type { TokenBudget } from '../lifecycle/token-budget.ts';
import type { Intake } from '../routing/intake.ts';
import type { Reactions } from '../routing/reactions.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Clock } from './clock.ts';

/** How much waits and runs at this moment. */
export interface Figures {
  /** Routed, queued, or offered and not yet claimed: the backlog. */
  readonly pending: number;
  /** Of those, begun but neither claimed nor running. */
  readonly pendingClaims: number;
  /** Reactions running or settling. */
  readonly inflight: number;
  /** min(Σ max_inflight, max_total_subagents). */
  readonly capacity: number;
}

interface FigureParts {
  readonly settings: ConfigInForce;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly intake: Intake;
  readonly reactions: Reactions;
  readonly rootRuns: RootRuns;
  readonly children: Children;
  readonly budget: TokenBudget;
}

export function figuresOf({ intake, reactions, rootRuns, settings }: FigureParts): Figures {
  const { claiming } = reactions;
  return {
    pending: intake.waiting + claiming + rootRuns.waiting,
    pendingClaims: claiming,
    inflight: intake.inflight - claiming,
    capacity: capacityOf(
      intake.lanes.map((lane) => lane.route.config.maxInflight),
      settings.current().limits.maxTotalSubagents,
    ),
  };
}

/** In-flight reactions over capacity, 0 to 1. */
export function saturationOf({ inflight, capacity }: Figures): number {
  return capacity === 0 ? 0 : Math.min(1, inflight / capacity);
}

/** Sets the gauges an autoscaler reads. */
export function publishFigures(parts: FigureParts, watched: number): void {
  const { metrics, intake, clock, budget, children, settings } = parts;
  const figures = figuresOf(parts);
  metrics.set('agent_config_generation', settings.generation);
  metrics.set('agent_pending_events', figures.pending);
  metrics.set('agent_inflight_reactions', figures.inflight);
  metrics.set('agent_reaction_lag_ms', Math.round(intake.lag(clock.now())));
  metrics.set('agent_saturation', saturationOf(figures));
  metrics.set('agent_active_subagents', children.active);
  metrics.set('agent_subscriptions_active', watched);
  if (budget.remaining !== null) metrics.set('agent_budget_tokens_remaining', budget.remaining);
}
