import { StringDecoder } from 'node:string_decoder';
import type { Clock } from '../reactor/clock.ts';

/** Longest line kept, bytes. */
const LINE_BYTES = 8 * 1024;
/** Lines passed on per second; what exceeds it is counted only (invariant 8). */
const LINES_PER_SECOND = 50;

/** Cuts a server's stderr into lines, bounded in length and rate. */
export class StderrLines {
  /** The last complete line, for saying why a server went away. */
  last: string | null = null;
  /** Lines that were not passed on. */
  suppressed = 0;
  private readonly decoder = new StringDecoder('utf8');
  private pending = '';
  private windowStart = Number.NEGATIVE_INFINITY;
  private inWindow = 0;

  constructor(
    private readonly clock: Clock,
    private readonly onLine: (line: string) => void,
  ) {}

  feed(chunk: Buffer): void {
    const lines = (this.pending + this.decoder.write(chunk)).split('\n');
    this.pending = (lines.pop() ?? '').slice(0, LINE_BYTES);
    for (const line of lines) this.take(line);
  }

  end(): void {
    if (this.pending !== '') this.take(this.pending);
    this.pending = '';
  }

  private take(raw: string): void {
    const line = raw.trimEnd().slice(0, LINE_BYTES);
    if (line === '') return;
    this.last = line;
    const now = this.clock.now();
    if (now - this.windowStart >= 1_000) {
      this.windowStart = now;
      this.inWindow = 0;
    }
    this.inWindow += 1;
    if (this.inWindow > LINES_PER_SECOND) this.suppressed += 1;
    else this.onLine(line);
  }
}
