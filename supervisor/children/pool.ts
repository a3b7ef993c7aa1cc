import { availableParallelism } from 'node:os';
import type { Clock } from '../reactor/clock.ts';
import type { AgentRun, RunEnd } from './agent-run.ts';
import type { Child } from './child.ts';
import { type PoolPlan, planSpawns } from './pool-plan.ts';
import { GOVERNOR_START, type Governor, governorStep } from './restart-governor.ts';
import { StartGate } from './start-gate.ts';

/** Starts of children in one go: each blocks the event loop for some milliseconds. */
const SPAWNS_PER_SLOT = 2;

/** How many children may be started in one go, and be starting at a time, on this machine. */
export function poolLimits(): Pick<PoolOptions, 'spawnsPerSlot' | 'maxStarting'> {
  return { spawnsPerSlot: SPAWNS_PER_SLOT, maxStarting: 2 * Math.max(2, availableParallelism()) };
}

/** A child that has been up for so long holds: one that dies sooner was never of use, ms. */
const PROVED_MS = 2_000;

export interface PoolHooks {
  /** Starts a child process. Never throws. */
  spawn(): Child;
  /** A run and a ready child have met. False when the run could not be started after all. */
  start(child: Child, run: AgentRun): boolean;
  /** The child started for a waiting run never came up. */
  failed(run: AgentRun, end: RunEnd): void;
  /** A warm child died and will be replaced, or not: the breaker opened. */
  warmDied(reason: 'crashed' | 'stuck', verdict: 'retry' | 'tripped'): void;
  /** Children can no longer be started, for this reason; or they can again (null). */
  canStart(problem: string | null): void;
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
  /** Of warm children that die after they came up. */
  private governor: Governor = GOVERNOR_START;
  /** Of children that do not come up. */
  private readonly starts: StartGate;
  private slotUsed = 0;
  private slotTimer: NodeJS.Timeout | undefined;
  private retryTimer: NodeJS.Timeout | undefined;
  /** Children that have come up and have not shown yet that they hold. */
  private readonly proving = new Map<Child, NodeJS.Timeout>();

  constructor(
    private readonly options: PoolOptions,
    private readonly hooks: PoolHooks,
  ) {
    this.starts = new StartGate(options.random);
  }

  /** Whether this machine can start children, as far as is known. */
  get canStart(): boolean {
    return this.starts.able;
  }

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
    this.proving.set(
      child,
      setTimeout(() => this.proved(child), PROVED_MS),
    );
    this.ready.push(child);
    const recovered = !this.starts.able;
    this.starts.cameUp();
    if (recovered) this.hooks.canStart(null);
    this.match();
    if (this.ready.length > this.target) this.setTarget(this.target);
    else this.pump();
  }

  /** A child without a run has gone. `expected`: it was told to. */
  onEnded(child: Child, end: RunEnd, expected: boolean): void {
    const forRun = this.starting.get(child);
    const beforeReady = this.starting.delete(child);
    // One that was told to go while it was being watched did nothing wrong.
    if (expected) this.proved(child);
    else this.unprove(child);
    const index = this.ready.indexOf(child);
    if (index !== -1) this.ready.splice(index, 1);
    if (this.closed || expected) return;
    if (beforeReady) this.startFailed(end);
    const verdict = beforeReady ? 'retry' : this.warmFailed();
    const run = forRun === true ? this.waiting.shift() : undefined;
    if (run !== undefined) this.hooks.failed(run, end);
    // One that left without being pushed has crashed.
    else this.hooks.warmDied(end.rung === 'none' ? 'crashed' : 'stuck', verdict);
    this.pump();
  }

  /** Nothing is started any more. Returns the runs that were still waiting. */
  close(): readonly AgentRun[] {
    this.closed = true;
    clearTimeout(this.slotTimer);
    clearTimeout(this.retryTimer);
    for (const child of [...this.proving.keys()]) this.unprove(child);
    const left = this.waiting;
    this.waiting = [];
    return left;
  }

  private match(): void {
    while (this.waiting.length > 0) {
      const child = this.ready.shift();
      if (child === undefined) return;
      const run = this.waiting.shift();
      if (run === undefined || !this.hooks.start(child, run)) this.ready.push(child);
      else this.proved(child);
    }
  }

  /** It has stayed up, or was fit to be given a run: what failed before no longer counts. */
  private proved(child: Child): void {
    if (!this.unprove(child)) return;
    const was = this.governor.name;
    this.step({ type: 'succeeded', now: this.options.clock.now() });
    if (was !== 'closed') this.pump();
  }

  private unprove(child: Child): boolean {
    clearTimeout(this.proving.get(child));
    return this.proving.delete(child);
  }

  /** A warm child died that had come up. */
  private warmFailed(): 'retry' | 'tripped' {
    const { clock, random } = this.options;
    const event = { type: 'failed', now: clock.now(), beforeReady: false, random: random() } as const;
    return this.step(event).includes('trip') ? 'tripped' : 'retry';
  }

  /** A child did not come up. That the breaker opens is told by `canStart`, once. */
  private startFailed(end: RunEnd): void {
    const { able } = this.starts;
    this.starts.failed(this.options.clock.now(), end);
    // The probe of warm children was a start as well.
    if (this.governor.name === 'probing') this.warmFailed();
    if (able && !this.starts.able) this.hooks.canStart(this.starts.reason);
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
    if (!this.starts.able) {
      this.refuseWaiting();
      this.probe();
      return;
    }
    const plan = this.plan();
    for (let i = 0; i < plan.forRuns; i += 1) this.spawn(true);
    if (plan.warm > 0) this.pumpWarm(plan.warm);
    // What did not fit follows in the next slot; what waits for a start to finish is pumped then.
    if (plan.later) this.armSlot();
  }

  /** Nothing can be started for these: who asked for them does something else with their work. */
  private refuseWaiting(): void {
    const coming = [...this.starting.values()].filter((forRun) => forRun).length;
    const message = `no child can be started: ${this.starts.reason}`;
    for (const run of this.waiting.splice(coming)) {
      const error = { type: 'SpawnFailed', message };
      this.hooks.failed(run, { cause: 'spawn_failed', exit: null, rung: 'none', error });
    }
  }

  /** Starts the one child that shows whether starting works again, when its time has come. */
  private probe(): void {
    if (this.starts.ask(this.options.clock.now())) this.spawn(false);
    else this.pumpAt(this.starts.until);
  }

  private pumpWarm(count: number): void {
    const now = this.options.clock.now();
    for (let i = 0; i < count; i += 1) {
      if (!this.starts.ask(now)) {
        this.pumpAt(this.starts.until);
        return;
      }
      if (!this.step({ type: 'ask', now }).includes('allow')) {
        this.pumpAt('until' in this.governor ? this.governor.until : null);
        return;
      }
      this.spawn(false);
    }
  }

  /** Looks again at `at`; null: what is under way will say. */
  private pumpAt(at: number | null): void {
    clearTimeout(this.retryTimer);
    if (at === null) return;
    this.retryTimer = setTimeout(() => this.pump(), Math.max(1, at - this.options.clock.now()));
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
