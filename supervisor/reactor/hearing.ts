/** What is heard of which server: how much is watched there, and whether all of it is in force. */
export class Hearing {
  private readonly active = new Map<string, number>();
  private readonly incomplete = new Set<string>();

  /** A server's subscriptions have changed. */
  note(event: { readonly server: string; readonly active: number; readonly complete: boolean }): void {
    this.active.set(event.server, event.active);
    if (event.complete) this.incomplete.delete(event.server);
    else this.incomplete.add(event.server);
  }

  /** Distinct URIs watched on all servers. */
  get watched(): number {
    return [...this.active.values()].reduce((sum, one) => sum + one, 0);
  }

  /** Servers with a subscription that is not in force. */
  get deaf(): readonly string[] {
    return [...this.incomplete];
  }
}
