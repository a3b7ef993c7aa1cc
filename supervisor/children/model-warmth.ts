import type { ModelTarget } from '../../protocol/frames.ts';
import type { Child } from './child.ts';

/** Which children without a run hold a connection to the model open. */
export class ModelWarmth {
  private readonly open = new Set<Child>();

  /** @param target the endpoint to hold a connection to; null: none */
  constructor(private readonly target: () => ModelTarget | null) {}

  /** Whether the next run finds a connection. */
  get any(): boolean {
    return this.open.size > 0;
  }

  /** Tells a child that waits for its run what to hold; one told before holds that instead. */
  tell(child: Child): void {
    const target = this.target();
    this.open.delete(child);
    if (target !== null && child.run === null) child.holdModel(target);
  }

  /** A child's connection has opened, or has been lost. */
  heard(child: Child, open: boolean): void {
    if (open && child.run === null) this.open.add(child);
    else this.open.delete(child);
  }

  /** The child has a run now, or is gone. */
  forget(child: Child): void {
    this.open.delete(child);
  }
}
