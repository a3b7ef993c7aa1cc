import ndjson from 'ndjson';
import { AgentdError } from './errors.ts';
import { MAX_FRAME_BYTES } from './frames.ts';

/** What the decoder found on the wire. */
export interface DecoderHandlers {
  /** One parsed JSON object. */
  frame(value: Record<string, unknown>): void;
  /** A line that is no JSON object: a stray banner, garbage. `sample` is cut to 200 characters. */
  garbage(sample: string, reason: string): void;
  /** A line grew past the cap. Called once; everything after it is ignored. */
  overflow(bytes: number): void;
}

const NEWLINE = 0x0a;

/**
 * An incremental NDJSON decoder with a cap on the length of one line.
 *
 * `ndjson` has no limit of its own, so a byte guard stands in front of it: memory stays bounded by
 * the cap however the peer chops or floods its output (invariant 8). Bytes are guarded, not
 * characters, and lines end at LF only, so U+2028 and U+2029 inside a string are ordinary text.
 */
export class FrameDecoder {
  private readonly parser = ndjson.parse({ strict: true });
  private pending: Buffer[] = [];
  private pendingBytes = 0;
  private overflowed = false;

  constructor(
    private readonly handlers: DecoderHandlers,
    private readonly maxBytes: number = MAX_FRAME_BYTES,
  ) {
    this.parser.on('data', (value: unknown) => {
      if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
        try {
          handlers.frame(value as Record<string, unknown>);
        } catch (error) {
          // A fault of the handler is no fault of the line: the parser must not take it for one.
          queueMicrotask(() => {
            throw error;
          });
        }
      } else {
        handlers.garbage(String(JSON.stringify(value)).slice(0, 200), 'not a JSON object');
      }
    });
    // Emitted, not thrown: the parser stays usable for the lines that follow. Its message quotes
    // the line's beginning.
    this.parser.on('error', (error: Error) => handlers.garbage(error.message, 'not JSON'));
  }

  /** Feeds bytes as they arrive. */
  write(chunk: Buffer): void {
    let start = 0;
    while (!this.overflowed && start < chunk.length) {
      const end = chunk.indexOf(NEWLINE, start);
      const stop = end === -1 ? chunk.length : end;
      const length = this.pendingBytes + (stop - start);
      if (length > this.maxBytes) {
        this.overflowed = true;
        this.pending = [];
        this.handlers.overflow(length);
        return;
      }
      if (end === -1) {
        this.pending.push(chunk.subarray(start));
        this.pendingBytes = length;
        return;
      }
      const piece = chunk.subarray(start, stop);
      const line = this.pending.length === 0 ? piece : Buffer.concat([...this.pending, piece]);
      this.pending = [];
      this.pendingBytes = 0;
      start = stop + 1;
      this.takeLine(line);
    }
  }

  /** Ends the stream. A last line without a newline is torn, and reported as garbage. */
  end(): void {
    if (this.pendingBytes > 0 && !this.overflowed) {
      const sample = Buffer.concat(this.pending).subarray(0, 200).toString('utf8');
      this.handlers.garbage(sample, 'ended without a newline');
    }
    this.pending = [];
    this.pendingBytes = 0;
    this.parser.end();
  }

  private takeLine(bytes: Buffer): void {
    const line = bytes.toString('utf8');
    const content = line.trim();
    // A stream takes null for its own end: everything after such a line would be lost.
    if (content === 'null') this.handlers.garbage(content, 'not a JSON object');
    else if (content !== '') this.parser.write(`${line}\n`);
  }
}

/**
 * One frame as a line of NDJSON, newline included.
 *
 * @param maxBytes cap on the encoded frame, bytes of UTF-8
 * @throws AgentdError FRAME_TOO_LARGE
 */
export function encodeFrame(frame: object, maxBytes: number = MAX_FRAME_BYTES): string {
  const text = JSON.stringify({ jsonrpc: '2.0', ...frame });
  // UTF-8 is at most three bytes per UTF-16 unit, so most frames need no byte count.
  if (text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes) {
    throw new AgentdError(
      'FRAME_TOO_LARGE',
      `cannot send a frame of ${Buffer.byteLength(text)} bytes: the cap is ${maxBytes}`,
    );
  }
  return `${text}\n`;
}
