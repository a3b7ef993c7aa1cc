import { availableParallelism } from 'node:os';
import type { Clock } from '../reactor/clock.ts';
import type { AgentRun, RunEnd } from './agent-run.ts';
import type { Child } from './child.ts';
import { type PoolPlan, planSpawns } from './pool-plan.ts';
import { DEFAULT_GOVERNOR, GOVERNOR_START, type Governor, governorStep } from './restart-governor.ts';

/** Starts of children in one go: each blocks the event loop for some milliseconds. */
const SPAWNS_PER_SLOT = 2;

/** How many children may be started in one go, and be starting at a time, on this machine. */
export function poolLimits(): Pick<PoolOptions, 'spawnsPerSlot' | 'maxStarting'> {
  return { spawnsPerSlot: SPAWNS_PER_SLOT, maxStarting: 2 * Math.max(2, availableParallelism()) };
}

export interface PoolHooks {
  /** Starts a child process. Never throws. */
  spawn(): Child;
  /** A run and a ready child have met. False when the run could not be started after all. */
  start(child: Child, run: AgentRun): boolean;
  /** The child started for a waiting run never came up. */
  failed(run: AgentRun, end: RunEnd): void;
  /** A warm child died and will be replaced, or not: the breaker opened. */
  warmDied(reason: 'crashed' | 'stuck', verdict: 'retry' | 'tripped'): void;
}

export interface PoolOptions {
  readonly clock: Clock;
  readonly random: () => number;
  /** Processes started in one go; the next go waits, so that the event loop is never blocked for long. */
  readonly spawnsPerSlot: number;
  readonly slotMs: number;
  /** Children that may be starting at the same time: more would only starve each other of CPU. */
  readonly maxStarting: number;
}

/** Idle children kept ready, and the runs that wait for one. */
export class ChildPool {
  private readonly ready: Child[] = [];
  /** Starting children; true: started because a run waits. */
  private readonly starting = new Map<Child, boolean>();
  private waiting: AgentRun[] = [];
  private target = 0;
  private closed = false;
  private governor: Governor = GOVERNOR_START;
  private slotUsed = 0;
  private slotTimer: NodeJS.Timeout | undefined;
  private retryTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly options: PoolOptions,
    private readonly hooks: PoolHooks,
  ) {}

  get warm(): number {
    return this.ready.length;
  }

  get waitingRuns(): readonly AgentRun[] {
    return this.waiting;
  }

  /** Gives the run to a warm child in this tick, or starts one for it. */
  place(run: AgentRun): void {
    this.waiting.push(run);
    this.match();
    // A start blocks the event loop for milliseconds: a replacement comes after what is at hand.
    if (this.waiting.length > 0) this.pump();
    else this.armSlot();
  }

  /** Takes a waiting run out of the queue. False when it does not wait here. */
  withdraw(run: AgentRun): boolean {
    const before = this.waiting.length;
    this.waiting = this.waiting.filter((other) => other !== run);
    return this.waiting.length < before;
  }

  setTarget(count: number): void {
    this.target = Math.max(0, Math.floor(count));
    while (this.ready.length > this.target && this.waiting.length === 0) this.ready.pop()?.stop('cancelled');
    this.pump();
  }

  onReady(child: Child): void {
    this.starting.delete(child);
    this.step({ type: 'succeeded', now: this.options.clock.now() });
    this.ready.push(child);
    this.match();
    if (this.ready.length > this.target) this.setTarget(this.target);
    else this.pump();
  }

  /** A child without a run has gone. `expected`: it was told to. */
  onEnded(child: Child, end: RunEnd, expected: boolean): void {
    const forRun = this.starting.get(child);
    const beforeReady = this.starting.delete(child);
    const index = this.ready.indexOf(child);
    if (index !== -1) this.ready.splice(index, 1);
    if (this.closed || expected) return;
    const run = forRun === true ? this.waiting.shift() : undefined;
    if (run !== undefined) this.hooks.failed(run, end);
    else this.punish(beforeReady, end);
    this.pump();
  }

  /** Nothing is started any more. Returns the runs that were still waiting. */
  close(): readonly AgentRun[] {
    this.closed = true;
    clearTimeout(this.slotTimer);
    clearTimeout(this.retryTimer);
    const left = this.waiting;
    this.waiting = [];
    return left;
  }

  private match(): void {
    while (this.waiting.length > 0) {
      const child = this.ready.shift();
      if (child === undefined) return;
      const run = this.waiting.shift();
      if (run !== undefined && !this.hooks.start(child, run)) this.ready.push(child);
    }
  }

  private punish(beforeReady: boolean, end: RunEnd): void {
    const now = this.options.clock.now();
    const effects = this.step({ type: 'failed', now, beforeReady, random: this.options.random() });
    // One that left without being pushed has crashed.
    const stuck = end.rung !== 'none';
    this.hooks.warmDied(stuck ? 'stuck' : 'crashed', effects.includes('trip') ? 'tripped' : 'retry');
  }

  private plan(): PoolPlan {
    return planSpawns({
      waiting: this.waiting.length,
      ready: this.ready.length,
      startingForRuns: [...this.starting.values()].filter((forRun) => forRun).length,
      startingWarm: [...this.starting.values()].filter((forRun) => !forRun).length,
      target: this.target,
      maxStarting: this.options.maxStarting,
      slotLeft: this.options.spawnsPerSlot - this.slotUsed,
    });
  }

  private pump(): void {
    if (this.closed) return;
    const plan = this.plan();
    for (let i = 0; i < plan.forRuns; i += 1) this.spawn(true);
    if (plan.warm > 0) this.pumpWarm(plan.warm);
    // What did not fit follows in the next slot; what waits for a start to finish is pumped then.
    if (plan.later) this.armSlot();
  }

  private pumpWarm(count: number): void {
    const now = this.options.clock.now();
    for (let i = 0; i < count; i += 1) {
      if (!this.step({ type: 'ask', now }).includes('allow')) {
        this.retryLater(now);
        return;
      }
      this.spawn(false);
    }
  }

  private retryLater(now: number): void {
    clearTimeout(this.retryTimer);
    const until = 'until' in this.governor ? this.governor.until : now + DEFAULT_GOVERNOR.baseMs;
    this.retryTimer = setTimeout(() => this.pump(), Math.max(1, until - now));
  }

  private spawn(forRun: boolean): void {
    this.slotUsed += 1;
    this.armSlot();
    this.starting.set(this.hooks.spawn(), forRun);
  }

  private armSlot(): void {
    this.slotTimer ??= setTimeout(() => {
      this.slotTimer = undefined;
      this.slotUsed = 0;
      this.pump();
    }, this.options.slotMs);
  }

  private step(event: Parameters<typeof governorStep>[1]) {
    const { state, effects } = governorStep(this.governor, event);
    this.governor = state;
    return effects;
  }
}
