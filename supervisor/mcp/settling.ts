/**
 * Things that are due a short while after they were added, in batches with one timer: each waits at
 * least one turn and at most two.
 */
export class Settling<T> {
  /** What is due at the next turn, and at the one after. */
  private next = new Map<string, T>();
  private after = new Map<string, T>();
  private timer: NodeJS.Timeout | undefined;

  /** @param turnMs length of a turn */
  constructor(
    private readonly turnMs: number,
    private readonly onDue: (due: ReadonlyMap<string, T>) => void,
  ) {}

  get empty(): boolean {
    return this.timer === undefined;
  }

  has(key: string): boolean {
    return this.next.has(key) || this.after.has(key);
  }

  add(key: string, value: T): void {
    this.after.set(key, value);
    this.timer ??= setTimeout(() => this.turn(), this.turnMs);
  }

  clear(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.next.clear();
    this.after.clear();
  }

  private turn(): void {
    const due = this.next;
    this.next = this.after;
    this.after = new Map();
    this.timer = this.next.size > 0 ? setTimeout(() => this.turn(), this.turnMs) : undefined;
    this.onDue(due);
  }
}
