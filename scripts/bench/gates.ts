import { inShard } from '../../supervisor/gates/shard-gate.ts';
import { Router } from '../../supervisor/routing/router.ts';
import { routeConfig } from '../../test/helpers/route-config.ts';
import { print } from './report.ts';

const KEYS = 1_024;
const ROUNDS = 1_000;

export async function run(): Promise<void> {
  const keys = Array.from(
    { length: KEYS },
    (_, index) => `inbox:///partition/${String(index).padStart(22, '0')}`,
  );
  const measure = (what: string, target: string | undefined, work: (key: string) => boolean): void => {
    let hits = 0;
    for (let warm = 0; warm < 50; warm++) for (const key of keys) if (work(key)) hits++;
    const start = performance.now();
    for (let round = 0; round < ROUNDS; round++) for (const key of keys) if (work(key)) hits++;
    const ns = ((performance.now() - start) * 1e6) / (KEYS * ROUNDS);
    if (hits < 0) throw new Error('unreachable');
    print({ what, value: ns, unit: 'ns', ...(target === undefined ? {} : { target }) });
  };
  measure(`shard gate, a key of ${keys[0]?.length} bytes`, '≤ 200', (key) => inShard(key, 3, 8));
  const router = new Router([
    ...Array.from({ length: 20 }, (_, index) => routeConfig({ match: `other:///${index}/**` })),
    routeConfig({ match: 'inbox:///**' }),
  ]);
  measure('router, 21 globs', undefined, (key) => router.find('s', key) !== null);
}
