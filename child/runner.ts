import { AgentdError } from '../protocol/errors.ts';
import {
  type ChildNotification,
  type ChildRequest,
  NO_USAGE,
  type Response,
  type RunResult,
  type RunStart,
  type SupervisorNotification,
  type Usage,
} from '../protocol/frames.ts';
import { crashOf, endOf, type LoopParts, runTask, type TaskEnd } from './loop/agent-loop.ts';
import { Budget } from './loop/budget.ts';
import { startTimer } from './loop/long-timer.ts';
import { taskMessage, wakeMessage } from './loop/prompt.ts';
import { RunControl, type StopRequest } from './loop/run-control.ts';
import type { TaskContext } from './model/model.ts';
import type { EffectPorts } from './model/scripted-effects.ts';
import type { WarmModel } from './model/warm-model.ts';
import { type ActiveRun, prepareRun } from './prepare-run.ts';
import { Reporter } from './report.ts';
import { BrokerClient } from './tools/broker-client.ts';
import { WakeQueue } from './wake-queue.ts';

/** What the runner reaches the outside through. */
export interface RunnerPorts {
  /** @throws AgentdError FRAME_TOO_LARGE */
  notify(message: ChildNotification, done?: () => void): void;
  notifyLossy(message: ChildNotification): void;
  /** @throws AgentdError FRAME_TOO_LARGE */
  request(message: ChildRequest): void;
  /** What the scripted model acts on this process through. */
  readonly effects: EffectPorts;
  /** What is held ready of the model while there is no run. */
  readonly model: Pick<WarmModel, 'hold' | 'release' | 'take'>;
  /** Monotonic clock, ms. */
  readonly now: () => number;
  /** The one result has left this process. */
  finished(): void;
}

type State =
  /** Warm: no run yet. */
  | { readonly kind: 'idle' }
  | { readonly kind: 'running'; readonly run: ActiveRun }
  /** The one result has been sent. */
  | { readonly kind: 'ended' };

/** One run or one session: takes its frames, works on its tasks, sends its one result. */
export class Runner {
  private state: State = { kind: 'idle' };
  private readonly wakes = new WakeQueue();

  constructor(private readonly ports: RunnerPorts) {}

  get phase(): State['kind'] {
    return this.state.kind;
  }

  /** Takes one notification of the supervisor. Anything for another run is ignored. */
  take(message: SupervisorNotification): void {
    if (message.method === 'run.start') {
      if (this.state.kind === 'idle') this.begin(message.params);
      else this.complain('a second run.start arrived; a child works on one run only');
      return;
    }
    if (message.method === 'model.hold') {
      if (this.state.kind === 'idle') this.ports.model.hold(message.params);
      return;
    }
    if (message.method === 'model.release') {
      void this.ports.model.release();
      return;
    }
    if (this.state.kind !== 'running') return;
    const { run } = this.state;
    if (message.method === 'request.progress') {
      run.broker.progress(message.params.id);
      return;
    }
    if (message.params.run_id !== run.start.run_id) return;
    switch (message.method) {
      case 'session.wake':
        if (run.start.kind !== 'session') this.complain('session.wake arrived for a run that is no session');
        else if (!this.wakes.add(message.params)) this.complain('too many wakes are waiting');
        return;
      case 'run.cancel':
        this.stop({ kind: 'cancelled', reason: message.params.reason });
        return;
      case 'run.wind_down':
        run.control.apply({ kind: 'wind_down' });
        this.wakes.stir();
        // Past its deadline a turn is not waited for any longer.
        startTimer(message.params.deadline_ms, () =>
          this.stop({ kind: 'cancelled', reason: 'the wind-down took too long' }),
        );
        return;
      case 'run.pause':
        run.control.apply({ kind: 'pause' });
        return;
      case 'run.resume':
        run.control.apply({ kind: 'resume' });
        return;
    }
  }

  answer(message: Response): void {
    if (this.state.kind === 'running') this.state.run.broker.answer(message);
  }

  /** Stops the run, if there is one; its result follows. */
  stop(request: StopRequest): void {
    if (this.state.kind !== 'running') return;
    this.state.run.control.apply({ kind: 'stop', request });
    this.wakes.stir();
  }

  /** Ends the run as crashed because this process cannot go on. */
  crash(error: unknown): void {
    if (this.state.kind !== 'running') return;
    this.finish(this.state.run, crashOf(error));
  }

  /** Answers for a run that cannot begin: supervisor and child may come from different builds. */
  reject(runId: string, reason: string): void {
    if (this.state.kind !== 'idle') {
      this.complain(reason);
      return;
    }
    this.state = { kind: 'ended' };
    const error = new AgentdError(
      'FRAME_INVALID',
      `the run cannot begin, its frame was not understood: ${reason}`,
    );
    const params = resultOf(runId, crashOf(error), NO_USAGE);
    this.ports.notify({ method: 'run.result', params }, () => this.ports.finished());
  }

  /** Something arrived that the protocol does not know. */
  complain(message: string): void {
    if (this.state.kind !== 'running') return;
    this.state.run.reporter.log('warn', 'loop.error', { err: { type: 'FRAME_INVALID', message } });
  }

  private begin(start: RunStart): void {
    const control = new RunControl();
    const budget = new Budget(start.limits, this.ports.now);
    const reporter = new Reporter(start, () => budget.usage, this.ports);
    const broker = new BrokerClient(start.run_id, {
      request: (message) => this.ports.request(message),
      cancelRequest: (id) => this.ports.notify({ method: 'request.cancel', params: { id } }),
    });
    const run: ActiveRun = { start, control, budget, broker, reporter };
    this.state = { kind: 'running', run };
    reporter.progress('start');
    if (reporter.logs('info')) {
      reporter.log('info', 'loop.start', { kind: start.kind, ...reporter.content(start.instruction) });
    }
    const work = start.kind === 'run' ? this.runOnce(run) : this.runSession(run);
    work.then(
      (end) => this.finish(run, end),
      (error: unknown) => this.finish(run, crashOf(error)),
    );
  }

  private async runOnce(run: ActiveRun): Promise<TaskEnd> {
    const { event } = run.start;
    const stopTimer = this.startDeadline(run);
    try {
      const parts = await this.prepare(run);
      parts.transcript.user(taskMessage(run.start));
      return await runTask(parts, { sequence: 1, uri: event?.uri ?? '', server: event?.server ?? '' });
    } finally {
      stopTimer();
    }
  }

  /** Serves wakes in order until the run is stopped or wound down. */
  private async runSession(run: ActiveRun): Promise<TaskEnd> {
    const { start } = run;
    const parts = await this.prepare(run);
    for (;;) {
      const wake = await this.wakes.next(() => run.control.state);
      if (wake === null) return endOf('cancelled');
      run.budget.begin();
      const stopTimer = this.startDeadline(run);
      const first = parts.transcript.messages.length === 0;
      parts.transcript.user(wakeMessage(first ? start.instruction : null, wake.uris, wake.messages));
      const task: TaskContext = {
        sequence: wake.sequence,
        uri: wake.uris[0] ?? '',
        server: start.event?.server ?? '',
      };
      const end = await runTask({ ...parts, control: run.control }, task);
      stopTimer();
      // A deadline ends the wake; a stop of the supervisor ends the session.
      run.control = run.control.forNextTask();
      this.ports.notify({
        method: 'session.turn',
        params: {
          run_id: start.run_id,
          sequence: wake.sequence,
          status: end.status,
          result: end.result,
          usage: run.budget.usage,
        },
      });
    }
  }

  private prepare(run: ActiveRun): Promise<LoopParts> {
    const { effects, model, now } = this.ports;
    return prepareRun(run, effects, now, model);
  }

  private startDeadline(run: ActiveRun): () => void {
    const { control } = run;
    return startTimer(run.start.limits.deadline_ms, () =>
      control.apply({ kind: 'stop', request: { kind: 'deadline' } }),
    );
  }

  private finish(run: ActiveRun, end: TaskEnd): void {
    if (this.state.kind !== 'running') return;
    const { usage } = run.budget;
    const { reporter, start } = run;
    if (reporter.logs('info')) {
      reporter.log('info', 'loop.final', { status: end.status, usage, ...reporter.content(end.result) });
    }
    this.state = { kind: 'ended' };
    // Whatever is still in flight after a crash of the loop is given up, and cancelled upstream.
    run.control.apply({ kind: 'stop', request: { kind: 'cancelled', reason: 'the run has ended' } });
    const params = resultOf(start.run_id, end, usage);
    this.ports.notify({ method: 'run.result', params }, () => this.ports.finished());
  }
}

function resultOf(runId: string, end: TaskEnd, usage: Usage): RunResult {
  return {
    run_id: runId,
    status: end.status,
    result: end.result,
    has_usable_partial: end.hasUsablePartial,
    usage,
    ...(end.error === null ? {} : { error: end.error }),
    ...(end.intelligenceFailed ? { intelligence_failed: true } : {}),
  };
}
