import type { ServerResponse } from 'node:http';

const KEEP_ALIVE_MS = 15_000;

/**
 * One event stream to a client, written with regard to how fast it reads: `ready` is called
 * whenever more can be written, and `write` says whether to go on.
 */
export class SseStream {
  private readonly timer: NodeJS.Timeout;
  /** Whether the keep-alive before this one is still unread. */
  private stalled = false;

  constructor(
    private readonly res: ServerResponse,
    headers: Readonly<Record<string, string>>,
    ready: () => void,
    ended: () => void,
    keepAliveMs: number = KEEP_ALIVE_MS,
  ) {
    // Set, not given to writeHead: the listener recognises a stream by it when it closes.
    res.setHeader('content-type', 'text/event-stream');
    res.writeHead(200, { ...headers, 'cache-control': 'no-cache, no-transform', 'x-accel-buffering': 'no' });
    res.flushHeaders();
    res.on('drain', () => {
      this.stalled = false;
      ready();
    });
    this.timer = setInterval(() => this.keepAlive(), keepAliveMs);
    this.timer.unref();
    res.on('close', () => {
      clearInterval(this.timer);
      ended();
    });
    // A reset while writing ends in 'close'; without a listener it would be thrown.
    res.on('error', () => undefined);
  }

  /** Whether more can be written without buffering beyond the socket's own limit. */
  get writable(): boolean {
    return !this.res.writableEnded && !this.res.destroyed && !this.res.writableNeedDrain;
  }

  /** Writes one message; `id` lets the client say later how far it got. */
  write(message: string, id: number | null): void {
    if (this.res.writableEnded || this.res.destroyed) return;
    this.res.write(`event: message\n${id === null ? '' : `id: ${id}\n`}data: ${message}\n\n`);
  }

  end(): void {
    clearInterval(this.timer);
    if (!this.res.writableEnded) this.res.end();
  }

  /** A comment line keeps intermediaries from closing; a client that reads nothing is cut off. */
  private keepAlive(): void {
    if (!this.res.writableNeedDrain) {
      this.stalled = false;
      this.res.write(': keepalive\n\n');
    } else if (this.stalled) {
      this.res.destroy();
    } else {
      this.stalled = true;
    }
  }
}
