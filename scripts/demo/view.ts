import type { Progress } from './progress.ts';

const BAR = 24;
const REFRESH_MS = 150;

/** Shows progress: a block that is redrawn on a terminal, plain lines anywhere else. */
export class View {
  private drawn = 0;
  private timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly out: NodeJS.WriteStream,
    private readonly progress: Progress,
    private total: number,
  ) {}

  start(): void {
    if (!this.out.isTTY) return;
    this.timer = setInterval(() => this.draw(), REFRESH_MS);
  }

  setTotal(total: number): void {
    this.total = Math.max(this.total, total);
  }

  /** An item was finished. */
  done(item: string, shard: number): void {
    if (this.out.isTTY) return;
    const { size } = this.progress.done;
    this.out.write(`${String(size).padStart(4)}/${this.total}  shard ${shard}  ${name(item)}\n`);
  }

  /** Something went wrong. On a terminal it stands above the block. */
  trouble(text: string): void {
    if (this.out.isTTY && this.drawn > 0) this.out.write(`\u001b[${this.drawn}A\u001b[0J`);
    this.drawn = 0;
    this.out.write(`trouble: ${text}\n`);
    if (this.out.isTTY) this.draw();
  }

  stop(): void {
    if (this.timer !== null) {
      clearInterval(this.timer);
      this.draw();
    }
    this.timer = null;
  }

  private draw(): void {
    const { shards, done } = this.progress;
    const lines = [
      `  items   ${bar(done.size, this.total)} ${done.size}/${this.total}`,
      ...shards.map(
        (shard, index) =>
          `  shard ${index} ${bar(shard.acked, Math.max(1, done.size))} ` +
          `claimed ${String(shard.granted).padStart(3)}  done ${String(shard.acked).padStart(3)}  ` +
          `children ${shard.running} ${'●'.repeat(Math.min(shard.running, 16))}`,
      ),
    ];
    const up = this.drawn > 0 ? `\u001b[${this.drawn}A` : '';
    this.out.write(up + lines.map((line) => `\u001b[2K${line}\n`).join(''));
    this.drawn = lines.length;
  }
}

function bar(value: number, total: number): string {
  const full = total === 0 ? 0 : Math.min(BAR, Math.round((value / total) * BAR));
  return `${'█'.repeat(full)}${'░'.repeat(BAR - full)}`;
}

/** The document's name as a person wrote it. */
function name(uri: string): string {
  const path = uri.replace(/^inbox:\/\/\//, '');
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
