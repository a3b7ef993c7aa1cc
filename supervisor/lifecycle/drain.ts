import type { Unstopped } from '../children/run.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import {
  type DrainEffect,
  type DrainEvent,
  type DrainState,
  type DrainStep,
  stepDrain,
} from './drain-machine.ts';

/** What a drain does to the rest of the supervisor. Each promise resolves within its budget (ms). */
export interface DrainActions {
  /** Stop hearing: triggers, subscriptions, readiness. */
  disarm(): void;
  /** Give back what was claimed and not started. */
  releaseOffers(budgetMs: number): Promise<void>;
  /** Let children finish their turn, then ladder what is left. */
  stopChildren(budgetMs: number): Promise<readonly Unstopped[]>;
  /** Wait for the leases of what just stopped; the items that could not be given back. */
  releaseLeases(budgetMs: number): Promise<readonly string[]>;
  /** Close connections and flush. */
  flush(budgetMs: number): Promise<void>;
  /** SIGKILL to every group. */
  killAll(budgetMs: number): Promise<readonly Unstopped[]>;
}

/** How a drain ended. */
export interface DrainEnd {
  readonly forced: boolean;
}

/** Time to see every group gone after a forced kill, ms. */
const FORCED_KILL_MS = 2_000;

/** Carries a drain out: one step after the other, each within its share of the budget. */
export class Drain {
  private state: DrainState = { phase: 'running' };
  private unstopped: readonly Unstopped[] = [];
  private unreleased: readonly string[] = [];
  private startedAt = 0;
  private finish: (end: DrainEnd) => void = () => undefined;
  /** Resolves when the process may exit. */
  readonly done = new Promise<DrainEnd>((resolve) => {
    this.finish = resolve;
  });

  constructor(
    private readonly deps: {
      readonly clock: Clock;
      readonly log: Log;
      readonly metrics: Metrics;
      readonly actions: DrainActions;
      readonly drainTimeoutMs: number;
      /** Reports a finished step through the reactor. */
      readonly stepDone: (step: DrainStep) => void;
    },
  ) {}

  get phase(): DrainState['phase'] {
    return this.state.phase;
  }

  /** What is left of the budget, ms; null before a drain. */
  remaining(now: number): number | null {
    return this.state.phase === 'draining' ? Math.max(0, this.state.deadline - now) : null;
  }

  handle(event: DrainEvent): void {
    const { clock, drainTimeoutMs } = this.deps;
    const decision = stepDrain(this.state, event, clock.now(), drainTimeoutMs);
    this.state = decision.state;
    for (const effect of decision.effects) this.apply(effect);
  }

  private apply(effect: DrainEffect): void {
    const { log, metrics, clock } = this.deps;
    switch (effect.type) {
      case 'started':
        this.startedAt = clock.now();
        metrics.add('agent_drains_total', { phase: 'started' });
        metrics.set('agent_draining', 1);
        log.info('drain.start', { cause: effect.cause, msg: `draining: ${effect.cause}` });
        return;
      case 'enter':
        log.debug('drain.step', { step: effect.step, budget_ms: effect.budgetMs });
        void this.perform(effect.step, effect.budgetMs).then(
          () => this.deps.stepDone(effect.step),
          (error: unknown) => {
            // A step that fails must not hold the drain up: say so and go on.
            log.error('drain.step', { step: effect.step, msg: `step failed: ${String(error)}` });
            this.deps.stepDone(effect.step);
          },
        );
        return;
      case 'force':
        void this.force();
        return;
      case 'exit':
        metrics.add('agent_drains_total', { phase: 'completed' });
        this.tellEnd();
        // Something that survived SIGKILL is past the budget by definition.
        this.finish({ forced: this.unstopped.length > 0 });
    }
  }

  private async perform(step: DrainStep, budgetMs: number): Promise<void> {
    const { actions, log } = this.deps;
    switch (step) {
      case 'disarm':
        actions.disarm();
        return;
      case 'release_offers':
        return actions.releaseOffers(budgetMs);
      case 'stop_children':
        this.unstopped = await actions.stopChildren(budgetMs);
        return;
      case 'release_leases':
        this.unreleased = await actions.releaseLeases(budgetMs);
        for (const item of this.unreleased) {
          log.warn('drain.claim_release_failed', {
            item,
            msg: `the lease on ${item} could not be given back: it is free again when it expires`,
          });
        }
        return;
      case 'flush':
        return actions.flush(budgetMs);
    }
  }

  private async force(): Promise<void> {
    this.deps.metrics.add('agent_drains_total', { phase: 'forced' });
    this.unstopped = await this.deps.actions.killAll(FORCED_KILL_MS);
    this.tellEnd();
    this.finish({ forced: true });
  }

  private tellEnd(): void {
    const { log, clock } = this.deps;
    const names = this.unstopped.map((one) => `${one.agentPath} (pid ${one.pid}, ${one.state})`);
    log.write(names.length > 0 ? 'error' : 'info', 'drain.done', {
      dur_ms: clock.now() - this.startedAt,
      unstopped: this.unstopped,
      unreleased: this.unreleased,
      msg: names.length > 0 ? `did not stop: ${names.join(', ')}` : 'drained',
    });
  }
}
