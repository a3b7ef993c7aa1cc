import type { ChildRequest, Response, SupervisorNotification } from '../../protocol/frames.ts';
import type { AgentRun } from './agent-run.ts';
import { CallDesk, type CallDeskHooks } from './call-desk.ts';
import type { Detectors } from './detectors.ts';
import type { ProgressParams, TurnParams } from './frame-intake.ts';
import { SessionWakes } from './session-wakes.ts';

export interface ChildRunHooks extends Pick<CallDeskHooks, 'callTool' | 'selfCall' | 'outOfScope'> {
  /** Sends a notification; a frame that cannot be sent ends the child. */
  notify(frame: SupervisorNotification): void;
  /** Sends an answer. @throws AgentdError FRAME_TOO_LARGE */
  answer(frame: Response | Extract<SupervisorNotification, { method: 'request.progress' }>): void;
}

/** One run inside its child: its calls, its wakes, and what its detectors must know of it. */
export class ChildRun {
  private readonly desk: CallDesk;
  private readonly wakes: SessionWakes | null;

  constructor(
    readonly run: AgentRun,
    private readonly detectors: Detectors,
    /** Until the supervisor's own deadline beyond the run's, ms. */
    private readonly slackMs: number,
    private readonly hooks: ChildRunHooks,
  ) {
    this.desk = new CallDesk(run, {
      callTool: hooks.callTool,
      selfCall: hooks.selfCall,
      outOfScope: hooks.outOfScope,
      send: (frame) => hooks.answer(frame),
      opened: (id, timeoutMs) => detectors.observe({ type: 'call', id, timeoutMs }),
      progressed: (id) => detectors.observe({ type: 'call_progress', id }),
      closed: (id) => detectors.observe({ type: 'call_done', id }),
    });
    this.wakes = run.spec.kind === 'session' ? this.sessionWakes(run.spec.runId) : null;
    if (this.wakes === null) this.watch();
  }

  wake(uris: readonly string[], messages: readonly string[]): void {
    this.wakes?.add(uris, messages);
  }

  tell(method: 'run.pause' | 'run.resume'): void {
    this.hooks.notify({ method, params: { run_id: this.run.spec.runId } });
  }

  /** Asks the run to end at its next turn boundary. */
  windDown(deadlineMs: number): void {
    const params = { run_id: this.run.spec.runId, deadline_ms: deadlineMs };
    this.hooks.notify({ method: 'run.wind_down', params });
  }

  cancel(reason: string): void {
    this.hooks.notify({ method: 'run.cancel', params: { run_id: this.run.spec.runId, reason } });
  }

  request(request: ChildRequest): void {
    this.desk.take(request);
  }

  cancelRequest(id: number): void {
    this.desk.cancel(id);
  }

  /** Its calls are cancelled at their servers. */
  abortCalls(): void {
    this.desk.abortAll();
  }

  progress(params: ProgressParams): void {
    this.detectors.observe({ type: 'progress' });
    if (params.kind === 'paused' || params.kind === 'resumed') this.detectors.observe({ type: params.kind });
    this.run.usage = params.usage;
  }

  /** A turn of a session has ended. False when no such turn was being made. */
  turned(params: TurnParams): boolean {
    if (this.wakes === null || !this.wakes.turned(params.sequence)) return false;
    this.run.usage = params.usage;
    this.detectors.observe({ type: 'rested' });
    return true;
  }

  /** Goes on with the next wake, if one waits. */
  next(): void {
    this.wakes?.pump();
  }

  private sessionWakes(runId: string): SessionWakes {
    return new SessionWakes(runId, (wake) => {
      this.watch();
      this.hooks.notify(wake);
    });
  }

  /** From here on the run, or the turn of a session, has its deadline. */
  private watch(): void {
    const { noProgressMs } = this.run;
    if (noProgressMs !== null) this.detectors.allowSilence(noProgressMs);
    this.detectors.observe({
      type: 'assigned',
      deadlineMs: this.run.spec.limits.deadline_ms + this.slackMs,
    });
  }
}
