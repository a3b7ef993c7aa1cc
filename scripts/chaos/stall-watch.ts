import { setTimeout as pause } from 'node:timers/promises';

const EVERY_MS = 100;

/**
 * Watches for a blocked reactor from outside: a scrape of /metrics is rendered on the reactor's
 * thread, so its latency bounds the stall. What this process itself was late by is taken off, since
 * a busy machine delays both.
 */
export class StallWatch {
  private readonly worst = new Map<string, number>();
  private running = true;
  private readonly done: Promise<unknown>;

  constructor(urls: () => readonly string[]) {
    this.done = this.watch(urls);
  }

  /** The longest stall seen of any reactor, ms. */
  async stop(): Promise<number> {
    this.running = false;
    await this.done;
    return Math.max(0, ...this.worst.values());
  }

  private async watch(urls: () => readonly string[]): Promise<void> {
    while (this.running) {
      const planned = performance.now() + EVERY_MS;
      await Promise.all(urls().map((url) => this.probe(url)));
      await pause(Math.max(0, planned - performance.now()));
    }
  }

  private async probe(url: string): Promise<void> {
    const start = performance.now();
    let own = 0;
    let expected = start + 10;
    const ticker = setInterval(() => {
      const now = performance.now();
      own = Math.max(own, now - expected);
      expected = now + 10;
    }, 10);
    try {
      await (await fetch(new URL('/metrics', url), { signal: AbortSignal.timeout(10_000) })).text();
    } catch {
      return; // it is being restarted; lost work shows elsewhere
    } finally {
      clearInterval(ticker);
    }
    const stall = performance.now() - start - own;
    this.worst.set(url, Math.max(this.worst.get(url) ?? 0, stall));
  }
}
