import { errorMessage } from '../../protocol/errors.ts';
import type { ChildRequest, RunResult, RunStart, SupervisorNotification } from '../../protocol/frames.ts';
import type { AgentRun } from './agent-run.ts';
import { Channel } from './channel.ts';
import { climb, describeEnd, isOverdue } from './child-end.ts';
import {
  CHILD_START,
  type ChildEffect,
  type ChildEvent,
  type ChildState,
  childStep,
} from './child-machine.ts';
import type { ChildHooks, ChildOptions } from './child-port.ts';
import { ChildRun } from './child-run.ts';
import { Detectors } from './detectors.ts';
import { type ProgressParams, type TurnParams, takeFrame } from './frame-intake.ts';
import { classify, type Health } from './liveness.ts';
import { LogRelay, relayRates } from './log-relay.ts';
import type { StopCause } from './run.ts';
import { type ProcessEnd, SupervisedProcess } from './supervised-process.ts';

/** One child process: its pipes, its state, its detectors and its end. */
export class Child {
  readonly process: SupervisedProcess;
  readonly spawnedAt: number;
  private state: ChildState = CHILD_START;
  readonly detectors: Detectors;
  private readonly channel: Channel;
  private readonly relay: LogRelay;
  /** Set once, when it is given its run. */
  private work: ChildRun | null = null;
  private wasReady = false;
  private endOfFile = false;
  /** What exactly was found against it. */
  private fault: string | null = null;
  private processEnd: ProcessEnd | null = null;
  private exitTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly options: ChildOptions,
    private readonly hooks: ChildHooks,
  ) {
    const { clock, timings } = options;
    this.spawnedAt = clock.now();
    this.detectors = new Detectors(clock, timings, {
      ping: (id) => this.channel.send({ id, method: 'ping' }),
      verdict: (cause) => this.convict(cause, null),
    });
    this.process = new SupervisedProcess(options.command, {
      env: options.env,
      instance: options.instance,
      log: options.log,
      timings,
      pipeDrainMs: timings.pipeDrainMs,
      cooperate: (cause) => this.askToLeave(cause),
      onExit: () => {
        clearTimeout(this.exitTimer);
        this.step({ type: 'leader_exit' });
      },
      cgroupKill: () => options.cgroup?.kill(),
    });
    if (this.process.pid !== null) options.cgroup?.add(this.process.pid);
    this.relay = new LogRelay(options.log, this.process.pid ?? process.pid, clock, relayRates(options));
    const sink = this.frameSink();
    this.channel = new Channel(
      this.process,
      {
        frame: (frame) => takeFrame(frame, sink),
        garbage: (sample, reason) => this.relay.garbage(sample, reason),
        fault: (reason, cause) => this.convict(cause, reason),
        endOfFile: () => {
          this.endOfFile = true;
          if (!this.process.leaderGone) this.awaitExit();
        },
        stderrLine: (line) => this.relay.stderr(line),
      },
      options.channelLimits,
    );
    void Promise.all([this.process.exited, this.process.drained]).then(([end]) => {
      this.processEnd = end;
      this.step({ type: 'ended' });
    });
  }

  get name(): ChildState['name'] {
    return this.state.name;
  }

  get pid(): number | null {
    return this.process.pid;
  }
  get health(): Health {
    const { process, endOfFile, detectors } = this;
    return classify({ exited: process.leaderGone, endOfFile, liveness: detectors.state });
  }

  /** Stray lines so far. */
  get garbageCount(): number {
    return this.channel.garbageCount;
  }

  get run(): AgentRun | null {
    return this.work?.run ?? null;
  }

  /** Gives a ready child its run: the frame is written in this tick. */
  assign(run: AgentRun, start: RunStart): void {
    this.relay.adopt(run.log);
    this.work = new ChildRun(run, this.detectors, this.options.timings.deadlineSlackMs, {
      ...this.hooks,
      notify: (frame) => this.notify(frame),
      answer: (frame) => this.channel.send(frame),
    });
    run.startedAt = this.options.clock.now();
    this.step({ type: 'assign', start });
  }

  /** Sends a frame to a child that waits for its run; to any other, nothing. */
  tellWaiting(frame: SupervisorNotification): void {
    if (this.state.name === 'ready') this.notify(frame);
  }

  /** Queues one wake of a session. */
  wake(uris: readonly string[], messages: readonly string[]): void {
    this.work?.wake(uris, messages);
  }

  tell(method: 'run.pause' | 'run.resume'): void {
    this.work?.tell(method);
  }

  /** Asks the run to end at its next turn boundary. */
  windDown(deadlineMs: number): void {
    this.work?.windDown(deadlineMs);
  }

  /**
   * Begins the kill ladder. The first cause is the one that is reported.
   *
   * @param withinMs the group must be gone by then; 0 is SIGKILL at once
   */
  stop(cause: StopCause, withinMs?: number): void {
    if (withinMs !== undefined && withinMs > 0) this.process.tighten(withinMs);
    this.step({ type: 'stop', cause });
    if (withinMs !== undefined && withinMs <= 0) this.process.kill(cause);
  }

  /** Moves up to a rung of the ladder, unless it begins there, whether or not one below it has had its time. */
  hurry(rung: 'terminate' | 'kill', cause: StopCause): void {
    const begins = this.state.name !== 'finishing';
    if (begins) this.step({ type: 'stop', cause });
    if (!begins || this.process.rung !== (rung === 'kill' ? 'kill' : 'term')) this.process[rung](cause);
  }

  /** A descendant moved: that counts as this run's progress. */
  noteProgress(): void {
    this.detectors.observe({ type: 'progress' });
  }

  /** Runs the detectors. Called once a tick. */
  tick(): void {
    const { clock, first, timings } = this.options;
    const age = clock.now() - this.spawnedAt;
    if (this.state.name === 'spawning') {
      if (!isOverdue(age, timings, first, this.pid)) return;
      this.convict('not_ready', `the child was not ready within ${Math.round(age)} ms`);
    } else if (this.state.name !== 'finishing' && this.state.name !== 'exited') this.detectors.tick();
    this.relay.tick();
  }

  private frameSink() {
    const child = this;
    return {
      get runId() {
        return child.run?.spec.runId ?? null;
      },
      ready: () => this.step({ type: 'ready' }),
      modelHeld: (origin: string, open: boolean) => this.hooks.modelHeld(this, origin, open),
      pong: () => this.detectors.observe({ type: 'pong' }),
      progress: (params: ProgressParams) => this.onProgress(params),
      result: (result: RunResult) => this.step({ type: 'result', result }),
      turn: (params: TurnParams) => this.onTurn(params),
      log: this.relay.frame.bind(this.relay),
      request: (request: ChildRequest) => {
        if (this.state.name === 'running' || this.state.name === 'paused') this.work?.request(request);
        else this.relay.garbage(request.method, `a request while ${this.state.name}`);
      },
      cancelRequest: (id: number) => this.work?.cancelRequest(id),
      unexpected: (what: string) => this.relay.garbage(what, 'unexpected'),
      incompatible: (version: number) =>
        this.convict('protocol', `the child speaks version ${version} of the protocol`),
    };
  }

  private onProgress(params: ProgressParams): void {
    if (this.work === null) return;
    this.work.progress(params);
    if (params.kind === 'paused' || params.kind === 'resumed') this.step({ type: params.kind });
    this.hooks.progress(this.work.run, params);
  }

  private onTurn(params: TurnParams): void {
    if (this.work?.turned(params) !== true) {
      this.relay.garbage(`session.turn ${params.sequence}`, 'no such turn is being made');
      return;
    }
    this.hooks.turn(this.work.run, params);
    this.work.next();
  }

  /** Ends it for something that was found against it. The first finding is the one that is reported. */
  convict(cause: StopCause, reason: string | null): void {
    if (this.state.name === 'exited') return;
    const { health } = this;
    const first = this.state.name !== 'finishing';
    if (first) this.fault = reason;
    // While it can still be looked at as it was found.
    if (first) this.hooks.convicted(this, cause, health);
    this.stop(cause);
  }

  private step(event: ChildEvent): void {
    const { state, effects } = childStep(this.state, event);
    this.state = state;
    for (const effect of effects) this.apply(effect, event);
  }

  private apply(effect: ChildEffect, event: ChildEvent): void {
    switch (effect) {
      case 'announce_ready':
        this.wasReady = true;
        this.hooks.ready(this);
        break;
      case 'send_start':
        if (event.type === 'assign') this.notify({ method: 'run.start', params: event.start });
        break;
      case 'keep_result':
        if (event.type === 'result' && this.run?.result === null) this.run.result = event.result;
        else this.relay.garbage('run.result', 'a second result');
        break;
      case 'abort_calls':
        this.work?.abortCalls();
        if (this.run !== null) this.hooks.ending(this.run);
        break;
      case 'expect_exit':
        this.channel.end();
        this.awaitExit();
        break;
      case 'begin_ladder':
        clearTimeout(this.exitTimer);
        if (event.type === 'stop') climb(this.process, event.cause, this.wasReady, this.work !== null);
        break;
      case 'note_unexpected':
        this.relay.garbage(event.type, `unexpected while ${this.state.name}`);
        break;
      case 'settle':
        this.settle();
        break;
    }
  }

  /** The first rung: a frame for who has a run, the end of stdin for who has none. */
  private askToLeave(cause: string): void {
    if (this.work === null) this.channel.end();
    else this.work.cancel(cause);
  }

  private awaitExit(): void {
    clearTimeout(this.exitTimer);
    this.exitTimer = setTimeout(() => this.process.terminate('lingering'), this.options.timings.exitGraceMs);
  }

  private notify(frame: SupervisorNotification): void {
    try {
      this.channel.send(frame);
    } catch (error) {
      this.convict('protocol', errorMessage(error));
    }
  }

  private settle(): void {
    clearTimeout(this.exitTimer);
    this.relay.tick();
    const { processEnd: ended, state, fault, wasReady, relay } = this;
    const cause = 'cause' in state ? state.cause : null;
    if (ended === null) return;
    const { cgroup } = this.options;
    const outOfMemory = cgroup?.ranOutOfMemory() ?? false;
    cgroup?.kill();
    cgroup?.remove();
    const { lastStderr } = relay;
    this.hooks.ended(this, describeEnd({ ended, cause, fault, wasReady, lastStderr, outOfMemory }));
  }
}
