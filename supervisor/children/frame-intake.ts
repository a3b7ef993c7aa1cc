import type { LogLevel } from '../../protocol/event-line.ts';
import type { ChildNotification, ChildRequest, FrameFromChild } from '../../protocol/frames.ts';
import { PROTOCOL_VERSION, type RunResult } from '../../protocol/frames.ts';

type ParamsOf<M extends ChildNotification['method']> = Extract<ChildNotification, { method: M }>['params'];
export type ProgressParams = ParamsOf<'run.progress'>;
export type TurnParams = ParamsOf<'session.turn'>;

/** What becomes of the frames of one child. */
export interface FrameSink {
  /** Run id of the child's run; null while it has none. */
  readonly runId: string | null;
  ready(): void;
  /** Its connection to the model has opened, or has been lost. */
  modelHeld(origin: string, open: boolean): void;
  pong(): void;
  progress(params: ProgressParams): void;
  result(result: RunResult): void;
  turn(params: TurnParams): void;
  log(level: LogLevel, event: string, fields: Record<string, unknown>): void;
  request(request: ChildRequest): void;
  cancelRequest(id: number): void;
  /** Valid, but not here: another run's, or an answer to nothing. */
  unexpected(what: string): void;
  /** The child speaks another version of the protocol. */
  incompatible(version: number): void;
}

/** Takes one valid frame. Frames about another run than the child's own are never believed. */
export function takeFrame(frame: FrameFromChild, sink: FrameSink): void {
  switch (frame.type) {
    case 'response':
      if ('result' in frame.body) sink.pong();
      else sink.unexpected('an error answer to a ping');
      return;
    case 'request':
      if (frame.body.params.run_id === sink.runId) sink.request(frame.body);
      else sink.unexpected(`a request for run ${frame.body.params.run_id}`);
      return;
    case 'notification':
      takeNotification(frame.body, sink);
  }
}

function takeNotification(body: ChildNotification, sink: FrameSink): void {
  switch (body.method) {
    case 'ready':
      if (body.params.protocol_version === PROTOCOL_VERSION) sink.ready();
      else sink.incompatible(body.params.protocol_version);
      return;
    case 'model.held':
      sink.modelHeld(body.params.origin, body.params.open);
      return;
    case 'log':
      sink.log(body.params.level, body.params.event, body.params.fields);
      return;
    case 'request.cancel':
      sink.cancelRequest(body.params.id);
      return;
    default:
      if (body.params.run_id !== sink.runId) {
        sink.unexpected(`${body.method} for run ${body.params.run_id}`);
        return;
      }
  }
  switch (body.method) {
    case 'run.progress':
      sink.progress(body.params);
      return;
    case 'run.result':
      sink.result(body.params);
      return;
    case 'session.turn':
      sink.turn(body.params);
  }
}
