/** Model calls of the last minute, for the rolling figures. Bounded in time and number. */
const WINDOW_MS = 60_000;
const MAX_CALLS = 1_024;

interface Call {
  readonly at: number;
  /** Null for a failed call: a refusal is fast and says nothing about latency. */
  readonly durMs: number | null;
  readonly tokens: number;
}

export class RollingFigures {
  private calls: Call[] = [];

  /** @param now monotonic, ms */
  add(now: number, durMs: number | null, tokens: number): void {
    this.calls.push({ at: now, durMs, tokens });
    if (this.calls.length > MAX_CALLS) this.calls.shift();
  }

  /** Tokens per second over the last minute. */
  tokensPerSecond(now: number): number {
    return this.recent(now).reduce((sum, call) => sum + call.tokens, 0) / (WINDOW_MS / 1_000);
  }

  /** Latency of successful calls of the last minute, ms, by nearest rank; null without any. */
  latency(now: number): { readonly p50: number; readonly p95: number } | null {
    const sorted = this.recent(now)
      .flatMap((call) => (call.durMs === null ? [] : [call.durMs]))
      .sort((a, b) => a - b);
    const rank = (q: number): number => sorted[Math.ceil(sorted.length * q) - 1] ?? 0;
    return sorted.length === 0 ? null : { p50: rank(0.5), p95: rank(0.95) };
  }

  private recent(now: number): readonly Call[] {
    this.calls = this.calls.filter((call) => call.at > now - WINDOW_MS);
    return this.calls;
  }
}
