import type { Ledger } from '../../supervisor/coordination/ledger.ts';
import { print, quantile } from './report.ts';

/** Claims and acks `pairs` items with so many contenders at once, and prints what that gave. */
export async function claimPairs(
  ledger: Ledger,
  options: {
    readonly adapter: string;
    readonly contenders: number;
    readonly pairs: number;
    readonly target?: string;
  },
): Promise<void> {
  const { adapter, contenders, pairs, target } = options;
  let next = 0;
  const latencies: number[] = [];
  const start = performance.now();
  const worker = async (holder: string): Promise<void> => {
    while (next < pairs) {
      const key = `${contenders}:${next++}`;
      const sent = performance.now();
      const claim = await ledger.claim({ key, item: key, holder, ttlMs: 30_000 });
      latencies.push(performance.now() - sent);
      if (!claim.granted) throw new Error(`${key} was not granted`);
      await ledger.ack({ leaseId: claim.leaseId, holder, result: null });
    }
  };
  await Promise.all(Array.from({ length: contenders }, (_, index) => worker(`holder-${index}`)));
  const seconds = (performance.now() - start) / 1000;
  print({
    what: `claim+ack pairs, ${adapter}, in process, ${contenders} contenders`,
    value: pairs / seconds,
    unit: '/s',
    ...(target === undefined ? {} : { target }),
  });
  print({ what: '  claim latency, p99', value: quantile(latencies, 0.99), unit: 'ms' });
}
