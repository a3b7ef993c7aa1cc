import type { Readable } from 'node:stream';
import { z } from 'zod';
import { errorMessage } from '../protocol/errors.ts';
import {
  type ChildNotification,
  type ChildRequest,
  PROTOCOL_VERSION,
  parseFrameFromSupervisor,
  type Response,
  type SupervisorNotification,
} from '../protocol/frames.ts';
import { encodeFrame, FrameDecoder } from '../protocol/ndjson.ts';
import type { FrameOutput } from './stdout-guard.ts';

/** Log lines are dropped while more than this waits in the pipe, bytes (invariants 8 and 10). */
const LOSSY_ABOVE_BYTES = 1024 * 1024;

export interface ConnectionHandlers {
  notification(message: SupervisorNotification): void;
  response(message: Response): void;
  /**
   * The supervisor sent something that is no frame. It is skipped.
   *
   * @param unreadRun the run that was to start, when it was a `run.start` this build cannot read
   */
  invalid(reason: string, unreadRun: string | null): void;
  /** stdin ended or broke, or its peer sent a line past the cap: there is no supervisor any more. */
  closed(reason: string): void;
}

/** The child's end of the control channel: frames on stdin and stdout. */
export class Connection {
  private ended = false;

  constructor(
    private readonly input: Readable,
    private readonly output: FrameOutput,
    private readonly handlers: ConnectionHandlers,
  ) {}

  /** Starts reading, then announces this process. `ready` is the first frame on the wire. */
  open(pid: number): void {
    const decoder = new FrameDecoder({
      frame: (value) => this.take(value),
      garbage: (_sample, reason) => this.handlers.invalid(reason, null),
      overflow: (bytes) => this.end(`a frame of more than ${bytes} bytes arrived`),
    });
    this.input.on('data', (chunk: Buffer) => decoder.write(chunk));
    this.input.on('end', () => this.end('stdin ended'));
    this.input.on('close', () => this.end('stdin closed'));
    this.input.on('error', (error) => this.end(`stdin broke: ${errorMessage(error)}`));
    this.notify({ method: 'ready', params: { protocol_version: PROTOCOL_VERSION, pid } });
  }

  /**
   * Sends a notification.
   *
   * @param done runs when the frame has left this process
   * @throws AgentdError FRAME_TOO_LARGE
   */
  notify(message: ChildNotification, done?: () => void): void {
    this.output.write(encodeFrame(message), done);
  }

  /** Sends a notification that may be lost: not sent when too large, or while the supervisor reads too slowly. */
  notifyLossy(message: ChildNotification): void {
    if (this.output.queuedBytes > LOSSY_ABOVE_BYTES) return;
    let line: string;
    try {
      line = encodeFrame(message);
    } catch {
      return;
    }
    this.output.write(line);
  }

  /**
   * Sends a request; the answer arrives at `handlers.response`.
   *
   * @throws AgentdError FRAME_TOO_LARGE
   */
  request(message: ChildRequest): void {
    this.output.write(encodeFrame(message));
  }

  private take(value: Record<string, unknown>): void {
    let frame: ReturnType<typeof parseFrameFromSupervisor>;
    try {
      frame = parseFrameFromSupervisor(value);
    } catch (error) {
      this.handlers.invalid(reasonOf(error), unreadRunOf(value));
      return;
    }
    if (frame.type === 'notification') this.handlers.notification(frame.body);
    else if (frame.type === 'response') this.handlers.response(frame.body);
    // A ping says whether this event loop turns, so it is answered here, ahead of any work.
    else this.output.write(encodeFrame({ id: frame.body.id, result: {} }));
  }

  private end(reason: string): void {
    if (this.ended) return;
    this.ended = true;
    this.handlers.closed(reason);
  }
}

/** The first thing that is wrong with a frame, on one line. */
function reasonOf(error: unknown): string {
  const issue = error instanceof z.ZodError ? error.issues[0] : undefined;
  return issue === undefined ? errorMessage(error) : `${issue.path.join('.')}: ${issue.message}`;
}

function unreadRunOf(value: Record<string, unknown>): string | null {
  const { method, params } = value;
  if (method !== 'run.start' || typeof params !== 'object' || params === null) return null;
  return 'run_id' in params && typeof params.run_id === 'string' ? params.run_id : null;
}
