import type { Children, RunOutcome, RunSpec } from '../children/run.ts';
import type { Config } from '../config/config.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Timers } from '../reactor/timers.ts';
import type { Governor } from '../routing/sessions.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { afterRootRun } from './mode.ts';

export interface RootRunDeps {
  readonly config: Pick<Config, 'mode' | 'schedule' | 'budgetExitCode' | 'runId'>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly children: Pick<Children, 'launch'>;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly governor: Governor;
  readonly newRunId: () => string;
  readonly spec: (runId: string) => RunSpec;
  readonly mayStart: () => boolean;
  readonly budgetRemaining: () => number | null;
  /** The next iteration is due. */
  readonly due: () => void;
  /** The work of this process is over. */
  readonly finish: (exitCode: number) => void;
  /** Each finished root run, for its result and report. */
  readonly finished: (outcome: RunOutcome, startedAt: number) => void;
}

/** The runs of `once`, `loop` and `schedule` mode: the same root task, one at a time. */
export class RootRuns {
  private current: { readonly runId: string; readonly startedAt: number } | null = null;
  /** A tick came while a run was going, or before anything might start. */
  private pending = false;
  private runs = 0;

  constructor(private readonly deps: RootRunDeps) {}

  owns(runId: string): boolean {
    return this.current?.runId === runId;
  }

  get waiting(): number {
    return this.pending ? 1 : 0;
  }

  /** Runs now, or as soon as the running one is over: ticks that pile up are one. */
  trigger(): void {
    if (this.current !== null || !this.deps.mayStart()) {
      if (this.pending) this.deps.metrics.add('agent_coalesced_events_total');
      this.pending = true;
      return;
    }
    this.pending = false;
    // `--run-id` names the first run; later iterations are runs of their own.
    const given = this.runs++ === 0 ? this.deps.config.runId : null;
    const runId = given ?? this.deps.newRunId();
    this.current = { runId, startedAt: this.deps.clock.wall() };
    this.deps.children.launch(this.deps.spec(runId));
  }

  /** Something that kept a run from starting may be over. */
  pump(): void {
    if (this.pending) this.trigger();
  }

  onSettled(outcome: RunOutcome): void {
    const { deps } = this;
    const { clock, config } = deps;
    const startedAt = this.current?.startedAt ?? clock.wall();
    this.current = null;
    deps.finished(outcome, startedAt);
    if (outcome.status !== 'crashed') deps.governor.succeeded(clock.now());
    const next = afterRootRun(config.mode, outcome, {
      now: clock.now(),
      intervalMs: config.schedule?.intervalMs ?? 0,
      budgetRemaining: deps.budgetRemaining(),
      budgetExitCode: config.budgetExitCode,
      verdict: () => deps.governor.failed(clock.now(), outcome.cause === 'not_ready'),
    });
    switch (next.kind) {
      case 'finish':
        deps.finish(next.exitCode);
        return;
      case 'again':
        if (outcome.status === 'crashed') {
          deps.metrics.add('agent_subagent_restarts_total', { reason: 'crashed' });
          deps.log
            .as({ runId: outcome.runId })
            .warn('subagent.restart', { reason: 'crashed', msg: 'the loop goes on after a backoff' });
        }
        deps.timers.set('loop', next.at, deps.due);
        return;
      case 'wait':
        this.pump();
    }
  }
}
