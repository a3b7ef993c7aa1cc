/** How many events one wake handles before I/O gets its turn. */
const BATCH = 256;

/**
 * One queue, one owner. Everything that can change the supervisor's state arrives here as an
 * event and is handled to its end before the next, so no decision ever sees half a change.
 */
export class Reactor<Event> {
  private queue: Event[] = [];
  private head = 0;
  private scheduled = false;
  private handling = false;

  /**
   * @param handle decides and acts on one event; must not throw
   * @param afterBatch runs once after each batch: work that many events share
   * @param beat tells the health thread that the reactor is alive
   */
  constructor(
    private readonly handle: (event: Event) => void,
    private readonly afterBatch: () => void,
    private readonly beat: () => void,
  ) {}

  /** Events posted and not yet handled. */
  get depth(): number {
    return this.queue.length - this.head;
  }

  /** Queues an event; it is handled after the current one, in order. */
  post(event: Event): void {
    this.queue.push(event);
    if (!this.scheduled && !this.handling) {
      this.scheduled = true;
      queueMicrotask(() => this.drain());
    }
  }

  private drain(): void {
    this.scheduled = false;
    this.handling = true;
    this.beat();
    let budget = BATCH;
    try {
      // What a batch's end posts (a launch, a timer that was due) is handled in the same wake.
      do {
        while (budget > 0) {
          const event = this.queue[this.head];
          if (event === undefined) break;
          this.head++;
          budget--;
          this.handle(event);
        }
        this.afterBatch();
      } while (budget > 0 && this.head < this.queue.length);
    } finally {
      this.handling = false;
      if (this.head === this.queue.length) {
        this.queue = [];
        this.head = 0;
      } else {
        if (this.head > 4096) {
          this.queue = this.queue.slice(this.head);
          this.head = 0;
        }
        this.scheduled = true;
        setImmediate(() => this.drain());
      }
    }
  }
}
