import type { Log } from '../telemetry/log.ts';
import {
  graceOf,
  LADDER_START,
  type LadderEvent,
  type LadderState,
  type LadderTimings,
  ladderStep,
  type Rung,
  rungOf,
} from './kill-ladder.ts';
import type { ProcessGroup } from './process-group.ts';

/** First and longest wait between two looks at a group that is not empty yet, ms. */
const POLL_FIRST_MS = 2;
const POLL_LONGEST_MS = 100;

export interface LadderEnd {
  /** The first reason given; null when the leader left by itself. */
  readonly cause: string | null;
  readonly rung: Rung;
  /** False when SIGKILL did not empty the group in time. */
  readonly groupEmpty: boolean;
}

export interface LadderHooks {
  /** The first rung: ask the process to leave. */
  readonly cooperate: (cause: string) => void;
  /** Beside SIGKILL to the group: what a cgroup can reach that a group cannot. */
  readonly cgroupKill?: () => void;
  /** The ladder has ended. Called again if a group that was given up on empties after all. */
  readonly done: (end: LadderEnd) => void;
  readonly log?: Log;
}

/** Applies the effects of the kill ladder to one process group. */
export class LadderRunner {
  private state: LadderState = LADDER_START;
  private firstCause: string | null = null;
  private leaderGone = false;
  private rungDue = Number.POSITIVE_INFINITY;
  private rungTimer: NodeJS.Timeout | undefined;
  private pollTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly group: ProcessGroup,
    private timings: LadderTimings,
    private readonly hooks: LadderHooks,
  ) {}

  get ended(): boolean {
    return this.state.name === 'gone' || this.state.name === 'abandoned';
  }

  get rung(): Rung {
    return rungOf(this.state);
  }

  get cause(): string | null {
    return this.firstCause;
  }

  /** Begins the ladder, or moves up to the named rung. The first cause given is the one kept. */
  advance(event: 'ask' | 'terminate' | 'kill', cause: string): void {
    if (this.state.name === 'idle' && !this.leaderGone) this.firstCause ??= cause;
    this.step(event);
  }

  /**
   * Shrinks the graces so that SIGKILL goes out well within `withinMs`, also for the rung it stands
   * on. Graces never grow.
   */
  tighten(withinMs: number): void {
    const { cancelGraceMs, termGraceMs } = this.timings;
    this.setGraces(Math.min(cancelGraceMs, withinMs * 0.5), Math.min(termGraceMs, withinMs * 0.3));
  }

  /** Replaces the grace before SIGTERM, ms. */
  setCancelGrace(graceMs: number): void {
    this.setGraces(graceMs, this.timings.termGraceMs);
  }

  private setGraces(cancelGraceMs: number, termGraceMs: number): void {
    this.timings = { ...this.timings, cancelGraceMs, termGraceMs };
    const grace = graceOf(this.state, this.timings);
    if (grace !== null && this.state.name !== 'killing' && performance.now() + grace < this.rungDue)
      this.armRung();
  }

  /** The leader has been reaped: what is left of its group follows. */
  leaderExited(): void {
    this.leaderGone = true;
    if (this.group.isEmpty()) {
      this.step('group_empty');
      return;
    }
    this.step('leader_exited');
    this.watchGroup(POLL_FIRST_MS);
  }

  private step(event: LadderEvent): void {
    const { state, effects } = ladderStep(this.state, event);
    this.state = state;
    for (const effect of effects) {
      switch (effect) {
        case 'send_cancel':
          this.hooks.cooperate(this.firstCause ?? 'stopped');
          break;
        case 'signal_term':
          this.signal('SIGTERM');
          // A stopped process cannot act on SIGTERM until it is continued.
          this.group.signal('SIGCONT');
          break;
        case 'signal_kill':
          this.signal('SIGKILL');
          this.hooks.cgroupKill?.();
          break;
        case 'arm_timer':
          this.armRung();
          break;
        case 'report_unkillable':
          this.hooks.log?.error('subagent.signal', {
            msg: 'SIGKILL did not empty the process group; it is left behind',
            members: this.group.members(),
            cause: this.firstCause,
          });
          break;
        case 'done':
          this.conclude();
          break;
      }
    }
  }

  private signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    if (!this.group.signal(signal)) return;
    this.hooks.log?.info('subagent.signal', {
      signal,
      group: this.group.leader.pid,
      cause: this.firstCause ?? 'left_behind',
      leader_gone: this.leaderGone,
    });
  }

  private armRung(): void {
    clearTimeout(this.rungTimer);
    const grace = graceOf(this.state, this.timings);
    if (grace === null) return;
    this.rungDue = performance.now() + grace;
    this.rungTimer = setTimeout(() => this.step('timeout'), grace);
  }

  /** No event tells when a group empties, so it is asked, less and less often. */
  private watchGroup(waitMs: number): void {
    if (this.ended) return;
    this.pollTimer = setTimeout(() => {
      if (this.group.isEmpty()) this.step('group_empty');
      else this.watchGroup(Math.min(waitMs * 2, POLL_LONGEST_MS));
    }, waitMs);
  }

  private conclude(): void {
    clearTimeout(this.rungTimer);
    clearTimeout(this.pollTimer);
    this.hooks.done({
      cause: this.firstCause,
      rung: rungOf(this.state),
      groupEmpty: this.state.name === 'gone',
    });
  }
}
