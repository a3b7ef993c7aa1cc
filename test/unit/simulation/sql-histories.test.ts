import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_POLICY, type Ledger } from '../../../supervisor/coordination/ledger.ts';
import { SqliteLedger } from '../../../supervisor/coordination/sqlite/sqlite-ledger.ts';
import type { LedgerCall } from '../../helpers/simulation/simulated-ledger.ts';
import { simulate } from '../../helpers/simulation/world.ts';

const SEEDS = 40;
let folder = '';

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentd-histories-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** Makes one call of a history; the answer in the history's own words. */
async function repeat(ledger: Ledger, call: LedgerCall, leases: Map<string, string>): Promise<string> {
  const { key, holder } = call;
  switch (call.call) {
    case 'claim': {
      const answer = await ledger.claim({ key, item: key, holder, ttlMs: call.ttlMs });
      if (!answer.granted) return `held by ${answer.heldBy}`;
      const known = [...leases].find(([, real]) => real === answer.leaseId)?.[0];
      if (known === undefined) leases.set(call.answer, answer.leaseId);
      return known ?? call.answer;
    }
    case 'renew': {
      const leaseId = leases.get(call.lease) ?? '';
      return (await ledger.renew({ leaseId, holder, ttlMs: call.ttlMs })).ok ? 'ok' : 'refused';
    }
    case 'ack':
      return (await ledger.ack({ leaseId: leases.get(call.lease) ?? '', holder, result: null })).ok
        ? 'ok'
        : 'refused';
    case 'release': {
      const leaseId = leases.get(call.lease) ?? '';
      return (await ledger.release({ leaseId, holder, reason: call.reason })).ok ? 'ok' : 'refused';
    }
  }
}

describe('the SQLite ledger under the histories of simulated fleets', () => {
  it(`answers every call of ${SEEDS} seeds as the model did`, async () => {
    let calls = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      let now = 0;
      const ledger = await SqliteLedger.open({
        path: join(folder, `${seed}.sqlite`),
        policy: { ...DEFAULT_POLICY, maxAttempts: 1_000 },
        clock: { now: () => now },
      });
      const leases = new Map<string, string>();
      for (const [index, call] of simulate(seed).history.entries()) {
        now = call.at;
        expect(
          await repeat(ledger, call, leases),
          `seed ${seed}, call ${index}: ${JSON.stringify(call)}`,
        ).toBe(call.answer);
        calls++;
      }
      await ledger.close();
    }
    expect(calls).toBeGreaterThan(SEEDS * 20);
  });
});
