import { describe, expect, it } from 'vitest';
import { chaos, TOLERATED_DESCRIPTORS } from '../../scripts/chaos/chaos.ts';
import { Random } from '../helpers/simulation/scheduler.ts';

const SECONDS = 60;
const SEED = 20_260_301;

describe('a fleet under chaos', () => {
  it(`survives ${SECONDS} seconds of killed, stopped and flooding children and vanishing servers`, async () => {
    const random = new Random(SEED);
    const report = await chaos({ seconds: SECONDS, random: () => random.next(), say: () => undefined });
    // How long a reactor was blocked depends on the machine; scripts/chaos judges that, not a test.
    const { documents, blows, descriptorGrowth, worstStallMs: _, ...rest } = report;
    expect(rest).toEqual({ unaccounted: [], duplicates: 0, leftover: [], zombies: 0, exits: [0, 0] });
    for (const growth of descriptorGrowth) expect(growth).toBeLessThanOrEqual(TOLERATED_DESCRIPTORS);
    expect(documents).toBeGreaterThan(20);
    expect(Object.keys(blows).length).toBeGreaterThan(3);
  }, 600_000);
});
