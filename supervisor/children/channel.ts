import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import {
  type FrameFromChild,
  MAX_FRAME_BYTES,
  type PingRequest,
  parseFrameFromChild,
  type Response,
  type SupervisorNotification,
} from '../../protocol/frames.ts';
import { encodeFrame, FrameDecoder } from '../../protocol/ndjson.ts';
import { LineSplitter } from './line-splitter.ts';
import type { SupervisedProcess } from './supervised-process.ts';

export interface ChannelLimits {
  /** Frames that may wait for a child that does not read. */
  readonly outboundFrames: number;
  /** Bytes of frames that may wait; one frame always may. */
  readonly outboundBytes: number;
  /** Stray lines skipped before the child is taken for broken. */
  readonly garbageLines: number;
  readonly frameBytes: number;
  readonly stderrLineBytes: number;
  /** Frames read from one child in one window; the pipe waits for the next window, and so does the child. */
  readonly framesPerWindow: number;
  readonly windowMs: number;
}

export const DEFAULT_CHANNEL_LIMITS: ChannelLimits = {
  outboundFrames: 64,
  outboundBytes: 2 * MAX_FRAME_BYTES,
  garbageLines: 100,
  frameBytes: MAX_FRAME_BYTES,
  stderrLineBytes: 64 * 1024,
  framesPerWindow: 500,
  windowMs: 50,
};

export interface ChannelHandlers {
  frame(frame: FrameFromChild): void;
  /** A line that is no frame: counted and skipped. */
  garbage(sample: string, reason: string): void;
  /** The child cannot be talked to any more. Called once. */
  fault(reason: string, cause: 'protocol' | 'wedged'): void;
  /** stdout ended. */
  endOfFile(): void;
  stderrLine(text: string): void;
}

export type FrameToChild = SupervisorNotification | PingRequest | Response;

/** The supervisor's end of one child's pipes. Everything that comes in is bounded and validated (invariants 7, 8). */
export class Channel {
  /** Stray lines so far. */
  garbageCount = 0;
  private readonly queue: string[] = [];
  private queuedBytes = 0;
  private blocked = false;
  private faulted = false;
  private closed = false;
  private framesInWindow = 0;
  private windowTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly process: SupervisedProcess,
    private readonly handlers: ChannelHandlers,
    private readonly limits: ChannelLimits = DEFAULT_CHANNEL_LIMITS,
  ) {
    const decoder = new FrameDecoder(
      {
        frame: (value) => this.take(value),
        garbage: (sample, reason) => this.skip(sample, reason),
        overflow: (bytes) => this.fault(`a line of more than ${bytes - 1} bytes without an end`, 'protocol'),
      },
      limits.frameBytes,
    );
    process.stdout.on('data', (chunk: Buffer) => {
      decoder.write(chunk);
      if (this.faulted) process.stdout.destroy();
      else if (this.framesInWindow >= limits.framesPerWindow) process.stdout.pause();
    });
    process.stdout.once('end', () => decoder.end());
    process.stdout.once('close', () => this.close());
    const lines = new LineSplitter(limits.stderrLineBytes, (text) => handlers.stderrLine(text));
    process.stderr.on('data', (chunk: Buffer) => lines.write(chunk));
    process.stderr.once('end', () => lines.end());
    process.stdin.on('drain', () => this.flush());
  }

  /**
   * Writes a frame, in this tick if the child keeps up. A frame over the cap is not sent.
   *
   * @throws AgentdError FRAME_TOO_LARGE
   */
  send(frame: FrameToChild): void {
    const line = encodeFrame(frame, this.limits.frameBytes);
    if (this.closed || this.process.stdin.destroyed || this.process.stdin.writableEnded) return;
    if (!this.blocked) {
      this.blocked = !this.process.stdin.write(line);
      return;
    }
    const bytes = Buffer.byteLength(line);
    const full =
      this.queue.length >= this.limits.outboundFrames ||
      (this.queue.length > 0 && this.queuedBytes + bytes > this.limits.outboundBytes);
    if (full) {
      this.fault(`it does not read its stdin: ${this.queue.length} frames are waiting`, 'wedged');
      return;
    }
    this.queue.push(line);
    this.queuedBytes += bytes;
  }

  /** Tells the child that nothing more will come. */
  end(): void {
    this.process.stdin.end();
  }

  private flush(): void {
    this.blocked = false;
    while (!this.blocked) {
      const line = this.queue.shift();
      if (line === undefined) break;
      this.queuedBytes -= Buffer.byteLength(line);
      this.blocked = !this.process.stdin.write(line);
    }
  }

  private take(value: Record<string, unknown>): void {
    if (this.faulted) return;
    this.countFrame();
    let frame: FrameFromChild;
    try {
      frame = parseFrameFromChild(value);
    } catch (error) {
      this.skip(JSON.stringify(value).slice(0, 200), `not a frame: ${firstLine(error)}`);
      return;
    }
    this.handlers.frame(frame);
  }

  private skip(sample: string, reason: string): void {
    if (this.faulted) return;
    this.countFrame();
    this.garbageCount += 1;
    this.handlers.garbage(sample, reason);
    if (this.garbageCount > this.limits.garbageLines) {
      this.fault(`more than ${this.limits.garbageLines} lines that are no frames`, 'protocol');
    }
  }

  /** A flooding child is slowed down by its own pipe, instead of taking the event loop. */
  private countFrame(): void {
    this.framesInWindow += 1;
    this.windowTimer ??= setTimeout(() => {
      this.windowTimer = undefined;
      this.framesInWindow = 0;
      this.process.stdout.resume();
    }, this.limits.windowMs);
  }

  private fault(reason: string, cause: 'protocol' | 'wedged'): void {
    if (this.faulted) return;
    this.faulted = true;
    this.handlers.fault(reason, cause);
  }

  private close(): void {
    if (this.closed) return;
    this.closed = true;
    clearTimeout(this.windowTimer);
    this.queue.length = 0;
    this.queuedBytes = 0;
    this.handlers.endOfFile();
  }
}

function firstLine(error: unknown): string {
  if (error instanceof AgentdError) return error.message;
  return errorMessage(error).replaceAll(/\s+/g, ' ').slice(0, 200);
}
