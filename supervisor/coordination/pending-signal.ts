/** Tells listeners that claimable items may have come, at most once per turn of the event loop. */
export class PendingSignal {
  private readonly listeners = new Set<() => void>();
  private raised = false;
  private closed = false;

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  raise(): void {
    if (this.raised || this.closed || this.listeners.size === 0) return;
    this.raised = true;
    setImmediate(() => {
      this.raised = false;
      if (!this.closed) for (const listener of [...this.listeners]) listener();
    });
  }

  close(): void {
    this.closed = true;
    this.listeners.clear();
  }
}
