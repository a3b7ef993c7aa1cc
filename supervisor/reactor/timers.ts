import type { Clock } from './clock.ts';

/** Node clamps longer delays to 1 ms, so a 30-day deadline would fire at once. */
const LONGEST_DELAY = 2 ** 31 - 1;

interface Entry {
  readonly key: string;
  readonly at: number;
  readonly fire: () => void;
}

/**
 * Named timers on the monotonic clock, over one underlying timer: setting a key again replaces it,
 * and delays past 2^31 ms are waited for in pieces.
 */
export class Timers {
  private readonly current = new Map<string, Entry>();
  private readonly heap: Entry[] = [];
  private handle: NodeJS.Timeout | null = null;
  private armedFor = Number.POSITIVE_INFINITY;

  constructor(private readonly clock: Clock) {}

  get size(): number {
    return this.current.size;
  }

  /**
   * Calls `fire` once when the clock reads `at` or later.
   *
   * @param at monotonic milliseconds
   */
  set(key: string, at: number, fire: () => void): void {
    const entry: Entry = { key, at, fire };
    this.current.set(key, entry);
    this.push(entry);
    this.arm();
  }

  clear(key: string): void {
    this.current.delete(key);
    if (this.current.size === 0) this.clearAll();
  }

  /** Forgets every timer, so that nothing of this object keeps the process alive. */
  clearAll(): void {
    this.current.clear();
    this.heap.length = 0;
    if (this.handle !== null) clearTimeout(this.handle);
    this.handle = null;
    this.armedFor = Number.POSITIVE_INFINITY;
  }

  /** Fires what is due now. Called by the underlying timer, and by tests with a manual clock. */
  runDue(): void {
    const now = this.clock.now();
    for (;;) {
      const first = this.peek();
      if (first === undefined || first.at > now) break;
      this.pop();
      this.current.delete(first.key);
      first.fire();
    }
    this.arm();
  }

  private arm(): void {
    const first = this.peek();
    if (first === undefined) {
      this.clearAll();
      return;
    }
    if (this.handle !== null && this.armedFor <= first.at) return;
    if (this.handle !== null) clearTimeout(this.handle);
    const delay = Math.min(Math.max(0, first.at - this.clock.now()), LONGEST_DELAY);
    this.armedFor = first.at;
    this.handle = setTimeout(() => {
      this.handle = null;
      this.armedFor = Number.POSITIVE_INFINITY;
      this.runDue();
    }, Math.ceil(delay));
  }

  /** The earliest live entry; entries that were replaced or cleared are discarded on the way. */
  private peek(): Entry | undefined {
    for (;;) {
      const first = this.heap[0];
      if (first === undefined || this.current.get(first.key) === first) return first;
      this.pop();
    }
  }

  private push(entry: Entry): void {
    const heap = this.heap;
    let index = heap.length;
    heap.push(entry);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || above.at <= entry.at) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = entry;
  }

  private pop(): void {
    const heap = this.heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      const right = left + 1;
      const leftEntry = heap[left];
      if (leftEntry === undefined) break;
      const rightEntry = heap[right];
      const useRight = rightEntry !== undefined && rightEntry.at < leftEntry.at;
      const child = useRight ? right : left;
      const childEntry = useRight ? rightEntry : leftEntry;
      if (childEntry.at >= last.at) break;
      heap[index] = childEntry;
      index = child;
    }
    heap[index] = last;
  }
}
