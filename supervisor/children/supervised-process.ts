import { closeSync, openSync } from 'node:fs';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { execa } from 'execa';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import type { Log } from '../telemetry/log.ts';
import { DEFAULT_LADDER_TIMINGS, type LadderTimings, type Rung } from './kill-ladder.ts';
import { type LadderEnd, LadderRunner } from './ladder-runner.ts';
import { killEscapeesSoon } from './leftovers.ts';
import { findProgram, parentDeathPrefix, whyNotRun } from './parent-death.ts';
import { identify, type ProcessIdentity } from './proc.ts';
import { ProcessGroup } from './process-group.ts';
import { closeSerial, disown, openSerial, own, sweepOrphans } from './reaping-domain.ts';
import { SUPERVISION_VARIABLE, supervisionId } from './supervision-id.ts';

/** How the leader of a group ended. */
export interface LeaderExit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** How a supervised process ended, with its whole group. */
export interface ProcessEnd extends LeaderExit, LadderEnd {
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

const PIPE_DRAIN_MS = 500;

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

export class SupervisedProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Null when it could not be started. */
  readonly identity: ProcessIdentity | null;
  /** Resolves when the leader is reaped and its group is proven empty, or given up on. Never rejects. */
  readonly exited: Promise<ProcessEnd>;
  /**
   * Resolves when stdout and stderr have ended, at most a short grace after the leader went: a
   * descendant that holds a pipe open can delay nothing.
   */
  readonly drained: Promise<void>;

  private readonly serial: number;
  private leaderExit: LeaderExit | null = null;
  private readonly group: ProcessGroup | null;
  private readonly ladder: LadderRunner | null;
  private drainTimer: NodeJS.Timeout | undefined;
  private finish: (end: ProcessEnd) => void = () => {};

  constructor(
    readonly command: readonly [string, ...string[]],
    private readonly options: SupervisedOptions,
  ) {
    this.exited = new Promise((resolve) => {
      this.finish = resolve;
    });
    this.serial = openSerial();
    const started = start(command, options, this.serial);
    const subprocess = typeof started === 'string' ? null : started;
    // Pipes are absent when the process ran out of file descriptors.
    this.stdin = subprocess?.stdin ?? new PassThrough();
    this.stdout = subprocess?.stdout ?? closedPipe();
    this.stderr = subprocess?.stderr ?? closedPipe();
    for (const pipe of [this.stdin, this.stdout, this.stderr]) pipe.on('error', () => {});
    this.drained = Promise.all([closed(this.stdout), closed(this.stderr)]).then(() => {
      clearTimeout(this.drainTimer);
    });
    const pid = subprocess?.pid;
    if (subprocess === null || pid === undefined) {
      this.identity = null;
      this.group = null;
      this.ladder = null;
      if (typeof started === 'string') queueMicrotask(() => this.failToSpawn(started));
      else if (subprocess !== null) {
        subprocess.then(
          (result) => this.failToSpawn(result.shortMessage ?? 'unknown error'),
          (error: unknown) => this.failToSpawn(errorMessage(error)),
        );
      }
      return;
    }
    own(pid);
    this.identity = identify(pid);
    this.group = new ProcessGroup(this.identity);
    this.ladder = new LadderRunner(this.group, options.timings ?? DEFAULT_LADDER_TIMINGS, {
      cooperate: options.cooperate ?? (() => this.stdin.end()),
      done: (end) => this.conclude(end),
      ...(options.cgroupKill === undefined ? {} : { cgroupKill: options.cgroupKill }),
      ...(options.log === undefined ? {} : { log: options.log }),
    });
    subprocess.catch(() => {});
    subprocess.once('exit', (code, signal) => this.onLeaderExit(pid, { code, signal }));
  }

  get pid(): number | null {
    return this.identity?.pid ?? null;
  }

  /** Whether the process has not ended yet, its group included. */
  get running(): boolean {
    return this.ladder !== null && !this.ladder.ended;
  }

  /** Whether the leader itself has gone. */
  get leaderGone(): boolean {
    return this.leaderExit !== null || this.identity === null;
  }

  /** The rung of the kill ladder it stands on. */
  get rung(): Rung {
    return this.ladder?.rung ?? 'none';
  }

  /** Why it is being stopped; null when it is not. */
  get cause(): string | null {
    return this.ladder?.cause ?? null;
  }

  /**
   * Begins the kill ladder at its first rung. The first cause given is the one kept.
   *
   * @param graceMs until SIGTERM; default from the timings
   */
  stop(cause: string, graceMs?: number): void {
    if (graceMs !== undefined) this.ladder?.setCancelGrace(graceMs);
    this.ladder?.advance('ask', cause);
  }

  /** Shrinks the graces of the ladder so that the group is gone within `withinMs`. */
  tighten(withinMs: number): void {
    this.ladder?.tighten(withinMs);
  }

  /** Begins at, or moves up to, SIGTERM. */
  terminate(cause: string): void {
    this.ladder?.advance('terminate', cause);
  }

  /** Begins at, or moves up to, SIGKILL. */
  kill(cause: string): void {
    this.ladder?.advance('kill', cause);
  }

  /** What is left of the group, for reports. */
  members(): readonly { readonly pid: number; readonly state: string }[] {
    return this.group?.members() ?? [];
  }

  private onLeaderExit(pid: number, exit: LeaderExit): void {
    disown(pid);
    this.leaderExit = exit;
    this.stdin.destroy();
    this.drainTimer = setTimeout(() => this.closePipes(), this.options.pipeDrainMs ?? PIPE_DRAIN_MS);
    this.options.onExit?.(exit);
    this.ladder?.leaderExited();
  }

  private conclude(end: LadderEnd): void {
    // Given up on before the leader went: nothing it says matters any more.
    if (this.leaderExit === null) this.closePipes();
    // What left the group has outlived its child from here on (invariant 6).
    closeSerial(this.serial);
    if (!sweepOrphans()) killEscapeesSoon(this.serial, this.options.log);
    const { code, signal } = this.leaderExit ?? { code: null, signal: null };
    this.finish({ code, signal, ...end, spawnError: null });
  }

  private failToSpawn(reason: string): void {
    this.closePipes();
    closeSerial(this.serial);
    const exit: LeaderExit = { code: null, signal: null };
    this.leaderExit = exit;
    this.options.onExit?.(exit);
    const spawnError = new AgentdError('SPAWN_FAILED', `cannot start ${this.command[0]}: ${reason}`);
    this.finish({ ...exit, cause: null, rung: 'none', groupEmpty: true, spawnError });
  }

  private closePipes(): void {
    this.stdin.destroy();
    this.stdout.destroy();
    this.stderr.destroy();
  }
}

/** What a spawn opens at once: both ends of three pipes and of the one that reports a failed exec. */
const SPAWN_DESCRIPTORS = 8;

/**
 * Whether a spawn would run out of file descriptors. Asked first, because a spawn that does so half
 * way leaves a process object that nobody can listen to, and whose error nobody can catch.
 */
function descriptorsLeft(): boolean {
  const opened: number[] = [];
  try {
    while (opened.length < SPAWN_DESCRIPTORS) opened.push(openSync('/dev/null', 'r'));
    return true;
  } catch {
    return false;
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}

/** Starts it, or says why not. The wrapper would hide a missing program behind an exit code. */
function start(command: readonly [string, ...string[]], options: SupervisedOptions, serial: number) {
  const [name, ...args] = command;
  const reason = whyNotRun(name, options.env.PATH, options.cwd);
  const program = findProgram(name, options.env.PATH, options.cwd);
  if (reason !== null || program === null) return reason ?? 'it cannot be found';
  if (!descriptorsLeft()) return 'too many open files (EMFILE)';
  const [wrapper, ...words] = parentDeathPrefix();
  const [file, rest] = wrapper === undefined ? [program, args] : [wrapper, [...words, program, ...args]];
  return execa(file, rest, {
    buffer: false,
    reject: false,
    cleanup: false,
    extendEnv: false,
    detached: true,
    encoding: 'buffer',
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
    env: { ...options.env, [SUPERVISION_VARIABLE]: supervisionId(serial, options.instance ?? 'agentd') },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
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
