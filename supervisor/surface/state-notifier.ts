import type { ResourceHub } from './resource-hub.ts';

/** Shortest time between two notifications of one resource, ms. */
const INTERVAL_MS = 100;

/**
 * Tells subscribers that a state resource changed, at once for the first change and at a bounded
 * rate after it. The last change is always told, so whoever reads on notice ends up current.
 */
export class StateNotifier {
  /** Resources told of within the interval, and whether they changed again since. */
  private readonly recent = new Map<string, { again: boolean; readonly timer: NodeJS.Timeout }>();

  constructor(
    private readonly hub: ResourceHub,
    private readonly intervalMs: number = INTERVAL_MS,
  ) {}

  /** A state resource changed. Costs next to nothing when nobody subscribes to it. */
  changed(uri: string): void {
    if (this.hub.subscriberCount(uri) === 0) return;
    const recent = this.recent.get(uri);
    if (recent === undefined) this.tell(uri);
    else recent.again = true;
  }

  /** Drops what is still to be told. */
  close(): void {
    for (const { timer } of this.recent.values()) clearTimeout(timer);
    this.recent.clear();
  }

  private tell(uri: string): void {
    const timer = setTimeout(() => {
      const recent = this.recent.get(uri);
      this.recent.delete(uri);
      if (recent?.again) this.tell(uri);
    }, this.intervalMs);
    timer.unref();
    this.recent.set(uri, { again: false, timer });
    this.hub.notifyUpdated(uri);
  }
}
