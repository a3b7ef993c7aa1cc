import type { Clock } from '../reactor/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { AgentRun, RunEnd } from './agent-run.ts';
import type { CallDeskHooks } from './call-desk.ts';
import type { CgroupLeaf } from './cgroup.ts';
import type { ChannelLimits } from './channel.ts';
import type { Child } from './child.ts';
import type { ProgressParams, TurnParams } from './frame-intake.ts';
import type { LadderTimings } from './kill-ladder.ts';
import type { Health, LivenessTimings } from './liveness.ts';
import type { StopCause } from './run.ts';

export interface ChildTimings extends LadderTimings, LivenessTimings {
  /** From spawn to `ready`, ms. */
  readonly readyMs: number;
  /** The same for the first child (its caches are cold), and for one that is kept from the CPU, ms. */
  readonly firstReadyMs: number;
  /** From the result, or from the end of stdout, to the exit, ms. */
  readonly exitGraceMs: number;
  /** What a child gets beyond its own deadline to report it itself, ms. */
  readonly deadlineSlackMs: number;
  readonly pipeDrainMs: number;
}

/** What the child needs of, and tells, its supervisor. */
export interface ChildHooks extends Pick<CallDeskHooks, 'callTool' | 'selfCall' | 'outOfScope'> {
  ready(child: Child): void;
  /** Its connection to the model has opened, or has been lost. */
  modelHeld(child: Child, origin: string, open: boolean): void;
  progress(run: AgentRun, progress: ProgressParams): void;
  turn(run: AgentRun, turn: TurnParams): void;
  /** A detector or the protocol has found against it; the ladder has begun. */
  convicted(child: Child, cause: StopCause, health: Health): void;
  /** The run is over for its descendants: it has answered, is being stopped, or has gone. */
  ending(run: AgentRun): void;
  /** The process is gone. Exactly once; its run is null for a child that never had one. */
  ended(child: Child, end: RunEnd): void;
}

export interface ChildOptions {
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly instance: string;
  /** No child has come up before this one. */
  readonly first: boolean;
  readonly clock: Clock;
  readonly log: Log;
  /** What it writes on standard error is logged in full instead of as a sample. */
  readonly aggregateLogs: boolean;
  readonly timings: ChildTimings;
  readonly channelLimits: ChannelLimits;
  /** Its own cgroup; null where none is delegated. */
  readonly cgroup: CgroupLeaf | null;
}
