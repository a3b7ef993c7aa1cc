/** Virtual time: a heap of things to do, and a generator that a seed determines. */

interface Task {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

export class Scheduler {
  now = 0;
  private readonly heap: Task[] = [];
  private order = 0;

  /** Runs `run` at `at`; tasks of one moment run in the order they were given. */
  schedule(at: number, run: () => void): void {
    const task: Task = { at: Math.max(at, this.now), order: this.order++, run };
    const { heap } = this;
    let index = heap.push(task) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || !before(task, above)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = task;
  }

  /** Runs tasks until `until`, or until `done` says so; false when time ran out. */
  runUntil(until: number, done: () => boolean): boolean {
    while (!done()) {
      const first = this.heap[0];
      if (first === undefined || first.at > until) return false;
      this.pop();
      this.now = first.at;
      first.run();
    }
    return true;
  }

  private pop(): void {
    const { heap } = this;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      const left = heap[child];
      if (left === undefined) break;
      const right = heap[child + 1];
      if (right !== undefined && before(right, left)) child++;
      const least = heap[child];
      if (least === undefined || !before(least, last)) break;
      heap[index] = least;
      index = child;
    }
    heap[index] = last;
  }
}

function before(a: Task, b: Task): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** Small, fast, and the same on every machine (mulberry32). */
export class Random {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  /** In [0, 1). */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  between(low: number, high: number): number {
    return low + this.next() * (high - low);
  }

  integer(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }
}
