import type { Exit } from '../fleet/agentd-process.ts';
import type { Tally } from '../fleet/inbox-client.ts';
import { type Progress, quantile } from './progress.ts';

/** The closing table. */
export function summary(facts: {
  readonly result: Tally;
  readonly progress: Progress;
  readonly exits: readonly Exit[];
  /** Updates each supervisor left to other shards. */
  readonly skipped: readonly number[];
}): string {
  const { result, progress, exits, skipped } = facts;
  const rows = [
    ['shard', 'done', 'claimed', 'left to others', 'exit'],
    ...progress.shards.map((shard, index) => [
      `${index}/${progress.shards.length}`,
      String(shard.acked),
      String(shard.granted),
      String(skipped[index] ?? '?'),
      String(exits[index]?.signal ?? exits[index]?.code ?? '?'),
    ]),
  ];
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const table = rows
    .map((row) => `  ${row.map((cell, column) => cell.padStart(widths[column] ?? 0)).join('   ')}`)
    .join('\n');
  const ms = (q: number): string => {
    const value = quantile(progress.lags, q);
    return Number.isNaN(value) ? '-' : `${Math.round(value)} ms`;
  };
  const lost = result.lost.length === 0 ? '' : `\n  still to do: ${result.lost.join(', ')}`;
  return (
    `\n${table}\n\n  items ${result.items}   duplicates ${result.duplicates}   not done ${result.lost.length}` +
    `   reaction latency p50 ${ms(0.5)}  p99 ${ms(0.99)}${lost}\n`
  );
}
