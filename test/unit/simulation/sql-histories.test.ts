import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../../../supervisor/coordination/ledger.ts';
import { SqliteLedger } from '../../../supervisor/coordination/sqlite/sqlite-ledger.ts';
import { REPLAY_ATTEMPTS, replay } from '../../helpers/simulation/replay.ts';

const SEEDS = 40;
let folder = '';

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentd-histories-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe('the SQLite ledger under the histories of simulated fleets', () => {
  it(`answers every call of ${SEEDS} seeds as the model did`, async () => {
    let calls = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      let now = 0;
      const ledger = await SqliteLedger.open({
        path: join(folder, `${seed}.sqlite`),
        policy: { ...DEFAULT_POLICY, maxAttempts: REPLAY_ATTEMPTS },
        clock: { now: () => now },
      });
      calls += await replay(seed, ledger, (at) => {
        now = at;
      });
      await ledger.close();
    }
    expect(calls).toBeGreaterThan(SEEDS * 20);
  });
});
