import { describe, expect, it } from 'vitest';
import { soak } from '../../scripts/soak/soak.ts';
import { Random } from '../helpers/simulation/scheduler.ts';

const ITEMS = 200;

describe('four supervisors that are killed and stopped at random', () => {
  it(`settle each of ${ITEMS} items once, do each side effect once, and lose none`, async () => {
    const random = new Random(4);
    const said: string[] = [];
    const report = await soak({
      supervisors: 4,
      items: ITEMS,
      calmMs: 3_000,
      random: () => random.next(),
      say: (line) => said.push(line),
      budgetMs: 400_000,
    });
    expect(report).toMatchObject({
      items: ITEMS,
      lost: [],
      open: [],
      duplicates: 0,
      settledTwice: [],
      leasesTwice: [],
      exits: [0, 0, 0, 0],
    });
    // It was hurt while it worked.
    expect(report.blows.killed).toBeGreaterThan(0);
    expect(report.grants).toBeGreaterThanOrEqual(ITEMS);
  }, 480_000);
});
