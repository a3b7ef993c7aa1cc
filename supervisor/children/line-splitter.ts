const NEWLINE = 0x0a;

/** Cuts bytes into lines of bounded length: what a line has beyond the cap is dropped, not kept. */
export class LineSplitter {
  private pieces: Buffer[] = [];
  private kept = 0;
  private open = false;

  constructor(
    private readonly maxBytes: number,
    private readonly line: (text: string) => void,
  ) {}

  write(chunk: Buffer): void {
    let start = 0;
    while (start < chunk.length) {
      const end = chunk.indexOf(NEWLINE, start);
      this.keep(chunk.subarray(start, end === -1 ? chunk.length : end));
      if (end === -1) return;
      this.flush();
      start = end + 1;
    }
  }

  /** Hands over a last line without a newline. */
  end(): void {
    if (this.open) this.flush();
  }

  private keep(piece: Buffer): void {
    this.open = true;
    const room = this.maxBytes - this.kept;
    if (room <= 0 || piece.length === 0) return;
    // Copied, so that a short line does not hold on to a whole chunk.
    const part = Buffer.from(piece.subarray(0, room));
    this.pieces.push(part);
    this.kept += part.length;
  }

  private flush(): void {
    const [first] = this.pieces;
    const bytes = this.pieces.length === 1 && first !== undefined ? first : Buffer.concat(this.pieces);
    this.pieces = [];
    this.kept = 0;
    this.open = false;
    this.line(bytes.toString('utf8'));
  }
}
