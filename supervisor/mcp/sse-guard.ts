const LF = 0x0a;
const CR = 0x0d;
const ID = [0x69, 0x64, 0x3a];

/**
 * Watches the bytes of a `text/event-stream` body: bounds the size of one event, because parsers
 * buffer an event until its blank line (invariant 8), and notes whether events carry ids, that is
 * whether the stream can be resumed.
 */
export class SseGuard {
  resumable = false;
  private eventBytes = 0;
  private lineBytes = 0;
  /** How much of `id:` the present line begins with. */
  private idBytes = 0;

  constructor(private readonly maxBytes: number) {}

  /** @throws Error when the event that is being received exceeds the cap */
  feed(chunk: Uint8Array): void {
    let start = 0;
    while (start < chunk.length) {
      const end = chunk.indexOf(LF, start);
      const stop = end === -1 ? chunk.length : end;
      this.lookForId(chunk, start, stop);
      this.lineBytes += stop - start;
      this.eventBytes += stop - start;
      if (this.eventBytes > this.maxBytes) {
        throw new Error(`an event of the server exceeds the cap of ${this.maxBytes} bytes`);
      }
      if (end === -1) return;
      if (this.lineBytes === 0 || (this.lineBytes === 1 && chunk[stop - 1] === CR)) this.eventBytes = 0;
      this.lineBytes = 0;
      this.idBytes = 0;
      start = end + 1;
    }
  }

  private lookForId(chunk: Uint8Array, start: number, stop: number): void {
    for (let at = start; at < stop && this.idBytes === this.lineBytes + (at - start); at++) {
      if (chunk[at] !== ID[this.idBytes]) return;
      this.idBytes += 1;
      if (this.idBytes === ID.length) this.resumable = true;
    }
  }
}

/** Counts the bytes of a body that is read as a whole. */
export class SizeGuard {
  readonly resumable = false;
  private bytes = 0;

  constructor(private readonly maxBytes: number) {}

  /** @throws Error when the body exceeds the cap */
  feed(chunk: Uint8Array): void {
    this.bytes += chunk.length;
    if (this.bytes > this.maxBytes) {
      throw new Error(`an answer of the server exceeds the cap of ${this.maxBytes} bytes`);
    }
  }
}
