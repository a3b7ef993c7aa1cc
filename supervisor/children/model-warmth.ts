import type { ModelTarget } from '../../protocol/frames.ts';
import type { Child } from './child.ts';

/** Which children without a run hold a connection to the model open. */
export class ModelWarmth {
  private readonly open = new Set<Child>();
  /** What each child was told to hold. */
  private readonly told = new Map<Child, string>();

  /** @param target the endpoint to hold a connection to; null: none */
  constructor(private readonly target: () => ModelTarget | null) {}

  /** Whether the next run finds a connection. */
  get any(): boolean {
    return this.open.size > 0;
  }

  /** Tells a child that waits for its run what to hold; one told before holds that instead. */
  tell(child: Child): void {
    const target = this.target();
    if (child.run !== null || (target === null && !this.told.has(child))) return;
    this.forget(child);
    if (target === null) {
      child.tellWaiting({ method: 'model.release', params: {} });
      return;
    }
    this.told.set(child, target.origin);
    child.tellWaiting({ method: 'model.hold', params: target });
  }

  /** A child's connection has opened, or has been lost. */
  heard(child: Child, origin: string, open: boolean): void {
    // Of an endpoint it was told to leave, a word may still be on its way.
    if (origin !== this.told.get(child)) return;
    if (open) this.open.add(child);
    else this.open.delete(child);
  }

  /** The child has a run now, or is gone. */
  forget(child: Child): void {
    this.open.delete(child);
    this.told.delete(child);
  }
}
