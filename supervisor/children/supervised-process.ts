import { PassThrough, type Readable, type Writable } from 'node:stream';
import { execa } from 'execa';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import type { Log } from '../telemetry/log.ts';
import {
  DEFAULT_LADDER_TIMINGS,
  graceOf,
  LADDER_START,
  type LadderEvent,
  type LadderState,
  type LadderTimings,
  ladderStep,
  type Rung,
  rungOf,
} from './kill-ladder.ts';
import { findProgram, parentDeathPrefix } from './parent-death.ts';
import { identify, type ProcessIdentity } from './proc.ts';
import { ProcessGroup } from './process-group.ts';
import { disown, own } from './reaping-domain.ts';
import { SUPERVISION_VARIABLE, supervisionId } from './supervision-id.ts';

/** How the leader of a group ended. */
export interface LeaderExit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** How a supervised process ended, with its whole group. */
export interface ProcessEnd extends LeaderExit {
  /** The first reason it was stopped for; null when it left by itself. */
  readonly cause: string | null;
  /** The last rung of the kill ladder that was needed. */
  readonly rung: Rung;
  /** False only when SIGKILL did not empty the group in time. */
  readonly groupEmpty: boolean;
  /** Why it could not be started; null when it was. */
  readonly spawnError: AgentdError | null;
}

export interface SupervisedOptions {
  /** The whole environment but for the supervision marker; nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Supervising instance, for the marker. */
  readonly instance?: string;
  readonly log?: Log;
  readonly timings?: LadderTimings;
  /** The first rung of the ladder. Default: its stdin is ended, which tells it to leave. */
  readonly cooperate?: (cause: string) => void;
  /** The last rung where a cgroup is delegated, beside SIGKILL to the group. */
  readonly cgroupKill?: () => void;
  /** How long pipes may stay open after the leader has gone, ms. Default 500. */
  readonly pipeDrainMs?: number;
  /** The leader has gone. Its pipes may still hold data, its group may not be empty. */
  readonly onExit?: (exit: LeaderExit) => void;
}

/**
 * Starts a program as the leader of its own process group and session, dying with this process
 * where the platform can do that.
 *
 * Attach `data` listeners to stdout and stderr in the same tick: a pipe nobody reads is resumed, so
 * that a chatty process cannot block on it. Never throws: a program that cannot be started ends at
 * once with `spawnError` (SPAWN_FAILED).
 */
export function spawnSupervised(
  command: readonly [string, ...string[]],
  options: SupervisedOptions,
): SupervisedProcess {
  return new SupervisedProcess(command, options);
}

/** First and longest wait between two looks at a group that is not empty yet, ms. */
const POLL_FIRST_MS = 2;
const POLL_LONGEST_MS = 100;
const PIPE_DRAIN_MS = 500;

export class SupervisedProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Null when it could not be started. */
  readonly pid: number | null;
  readonly identity: ProcessIdentity | null;
  /** Resolves when the leader is reaped and its group is proven empty, or given up on. Never rejects. */
  readonly exited: Promise<ProcessEnd>;
  /**
   * Resolves when stdout and stderr have ended, at most a short grace after the leader went: a
   * descendant that holds a pipe open can delay nothing.
   */
  readonly drained: Promise<void>;

  private ladder: LadderState = LADDER_START;
  private firstCause: string | null = null;
  private leaderExit: LeaderExit | null = null;
  private spawnError: AgentdError | null = null;
  private readonly group: ProcessGroup | null;
  private timings: LadderTimings;
  private rungTimer: NodeJS.Timeout | undefined;
  private pollTimer: NodeJS.Timeout | undefined;
  private drainTimer: NodeJS.Timeout | undefined;
  private finish: (end: ProcessEnd) => void = () => {};

  constructor(
    readonly command: readonly [string, ...string[]],
    private readonly options: SupervisedOptions,
  ) {
    this.timings = options.timings ?? DEFAULT_LADDER_TIMINGS;
    this.exited = new Promise((resolve) => {
      this.finish = resolve;
    });
    const found = findProgram(command[0], options.env['PATH'], options.cwd);
    if (found === null) {
      this.stdin = new PassThrough();
      this.stdout = closedPipe();
      this.stderr = closedPipe();
      this.drained = Promise.resolve();
      this.pid = null;
      this.identity = null;
      this.group = null;
      this.failToSpawn(`no such program, or it may not be run`);
      return;
    }
    const subprocess = execa(...withParentDeath(found, command.slice(1)), {
      buffer: false,
      reject: false,
      cleanup: false,
      extendEnv: false,
      detached: true,
      encoding: 'buffer',
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'pipe',
      env: { ...options.env, [SUPERVISION_VARIABLE]: supervisionId(options.instance ?? 'agentd') },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    // Absent when the process ran out of file descriptors.
    this.stdin = subprocess.stdin ?? new PassThrough();
    this.stdout = subprocess.stdout ?? closedPipe();
    this.stderr = subprocess.stderr ?? closedPipe();
    for (const pipe of [this.stdin, this.stdout, this.stderr]) pipe.on('error', () => {});
    this.drained = Promise.all([closed(this.stdout), closed(this.stderr)]).then(() => {
      clearTimeout(this.drainTimer);
    });
    const pid = subprocess.pid;
    this.pid = pid ?? null;
    if (pid === undefined) {
      this.identity = null;
      this.group = null;
      void subprocess.then(
        (result) => {
          this.failToSpawn(result.shortMessage ?? 'unknown error');
        },
        (error: unknown) => this.failToSpawn(errorMessage(error)),
      );
      return;
    }
    own(pid);
    this.identity = identify(pid);
    this.group = new ProcessGroup(this.identity);
    void subprocess.catch(() => {});
    subprocess.once('exit', (code, signal) => this.onLeaderExit(pid, { code, signal }));
  }

  /** Whether the process has not ended yet, its group included. */
  get running(): boolean {
    return this.ladder.name !== 'gone' && this.ladder.name !== 'abandoned';
  }

  /** Whether the leader itself has gone. */
  get leaderGone(): boolean {
    return this.leaderExit !== null || this.pid === null;
  }

  get rung(): Rung {
    return rungOf(this.ladder);
  }

  get cause(): string | null {
    return this.firstCause;
  }

  /**
   * Begins the kill ladder at its first rung. The first cause given is the one kept.
   *
   * @param graceMs until SIGTERM; default from the timings
   */
  stop(cause: string, graceMs?: number): void {
    if (graceMs !== undefined) this.timings = { ...this.timings, cancelGraceMs: graceMs };
    this.advance('ask', cause);
  }

  /** Begins at, or moves up to, SIGTERM. */
  terminate(cause: string): void {
    this.advance('terminate', cause);
  }

  /** Begins at, or moves up to, SIGKILL. */
  kill(cause: string): void {
    this.advance('kill', cause);
  }

  /** What is left of the group, for reports. */
  members(): readonly { readonly pid: number; readonly state: string }[] {
    return this.group?.members() ?? [];
  }

  private advance(event: LadderEvent, cause: string): void {
    if (this.ladder.name === 'idle' && this.leaderExit === null && this.group !== null)
      this.firstCause ??= cause;
    this.step(event);
  }

  private step(event: LadderEvent): void {
    if (this.group === null) return;
    const before = this.ladder;
    const { state, effects } = ladderStep(before, event);
    this.ladder = state;
    for (const effect of effects) {
      switch (effect) {
        case 'send_cancel':
          this.cooperate();
          break;
        case 'signal_term':
          this.signal('SIGTERM');
          // A stopped process cannot act on SIGTERM until it is continued.
          this.group.signal('SIGCONT');
          break;
        case 'signal_kill':
          this.signal('SIGKILL');
          this.options.cgroupKill?.();
          break;
        case 'arm_timer':
          this.armRung();
          break;
        case 'report_unkillable':
          this.options.log?.error('subagent.signal', {
            msg: 'SIGKILL did not empty the process group; it is left behind',
            members: this.members(),
            cause: this.firstCause,
          });
          break;
        case 'done':
          this.conclude();
          break;
      }
    }
  }

  private cooperate(): void {
    if (this.options.cooperate === undefined) this.stdin.end();
    else this.options.cooperate(this.firstCause ?? 'stopped');
  }

  private signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    const sent = this.group?.signal(signal) ?? false;
    if (!sent) return;
    this.options.log?.info('subagent.signal', {
      signal,
      group: this.pid,
      cause: this.firstCause ?? 'left_behind',
      leader_gone: this.leaderExit !== null,
    });
  }

  private armRung(): void {
    clearTimeout(this.rungTimer);
    const grace = graceOf(this.ladder, this.timings);
    if (grace !== null) this.rungTimer = setTimeout(() => this.step('timeout'), grace);
  }

  private onLeaderExit(pid: number, exit: LeaderExit): void {
    disown(pid);
    this.leaderExit = exit;
    this.stdin.destroy();
    this.drainTimer = setTimeout(() => this.closePipes(), this.options.pipeDrainMs ?? PIPE_DRAIN_MS);
    this.options.onExit?.(exit);
    if (this.group?.isEmpty() === true) {
      this.step('group_empty');
      return;
    }
    this.step('leader_exited');
    this.watchGroup(POLL_FIRST_MS);
  }

  /** No event tells when a group empties, so it is asked, less and less often. */
  private watchGroup(waitMs: number): void {
    if (!this.running) return;
    this.pollTimer = setTimeout(() => {
      if (this.group?.isEmpty() === true) this.step('group_empty');
      else this.watchGroup(Math.min(waitMs * 2, POLL_LONGEST_MS));
    }, waitMs);
  }

  private closePipes(): void {
    this.stdin.destroy();
    this.stdout.destroy();
    this.stderr.destroy();
  }

  private failToSpawn(reason: string): void {
    this.spawnError = new AgentdError('SPAWN_FAILED', `cannot start ${this.command[0]}: ${reason}`);
    this.ladder = { name: 'gone', rung: 'none' };
    queueMicrotask(() => {
      this.options.onExit?.({ code: null, signal: null });
      this.conclude();
    });
  }

  private conclude(): void {
    clearTimeout(this.rungTimer);
    clearTimeout(this.pollTimer);
    // Abandoned before the leader went: nothing it says matters any more.
    if (this.leaderExit === null) this.closePipes();
    this.finish({
      code: this.leaderExit?.code ?? null,
      signal: this.leaderExit?.signal ?? null,
      cause: this.firstCause,
      rung: rungOf(this.ladder),
      groupEmpty: this.ladder.name === 'gone',
      spawnError: this.spawnError,
    });
  }
}

function withParentDeath(program: string, args: readonly string[]): [string, string[]] {
  const [wrapper, ...words] = parentDeathPrefix();
  return wrapper === undefined ? [program, [...args]] : [wrapper, [...words, program, ...args]];
}

function closed(pipe: Readable): Promise<void> {
  return new Promise((resolve) => {
    if (pipe.closed) resolve();
    else pipe.once('close', () => resolve());
  });
}

function closedPipe(): Readable {
  const pipe = new PassThrough();
  pipe.end();
  return pipe;
}
