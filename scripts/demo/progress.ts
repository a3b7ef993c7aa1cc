import type { Line } from '../fleet/agentd-process.ts';

/** What the telemetry of one supervisor has said so far. */
export interface ShardProgress {
  granted: number;
  acked: number;
  running: number;
  spawned: number;
}

/** Distinct troubles kept, and the longest shown, characters. */
const MAX_TROUBLES = 5;
const TROUBLE_LENGTH = 400;

/** The demo's picture of the fleet, built from the supervisors' telemetry alone. */
export class Progress {
  readonly shards: ShardProgress[];
  readonly lags: number[] = [];
  /** Item → shard that finished it. */
  readonly done = new Map<string, number>();
  /** What went wrong, each thing once. */
  readonly troubles: string[] = [];

  constructor(shards: number) {
    this.shards = Array.from({ length: shards }, () => ({ granted: 0, acked: 0, running: 0, spawned: 0 }));
  }

  /** The trouble that a line tells of and none before did; null for any other line. */
  trouble(line: Line): string | null {
    if (line.level !== 'warn' && line.level !== 'error') return null;
    const err = line.err as { readonly type?: unknown; readonly message?: unknown } | undefined;
    const text = String(err?.message ?? line.msg ?? line.event).slice(0, TROUBLE_LENGTH);
    if (this.troubles.includes(text) || this.troubles.length >= MAX_TROUBLES) return null;
    this.troubles.push(text);
    return text;
  }

  take(index: number, line: Line): void {
    const shard = this.shards[index];
    if (shard === undefined) return;
    switch (line.event) {
      case 'claim.granted':
        shard.granted++;
        break;
      case 'claim.acked':
        shard.acked++;
        if (typeof line.item === 'string') this.done.set(line.item, index);
        break;
      case 'trigger.fired':
        if (typeof line.lag_ms === 'number') this.lags.push(line.lag_ms);
        shard.spawned++;
        shard.running++;
        break;
      case 'subagent.exit':
        shard.running = Math.max(0, shard.running - 1);
        break;
    }
  }
}

/** The value below which a share `q` of the numbers lies; NaN for none. */
export function quantile(numbers: readonly number[], q: number): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}
