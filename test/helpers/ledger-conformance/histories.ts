import { expect, it } from 'vitest';
import type { SettleAnswer } from '../../../supervisor/coordination/ledger.ts';
import type { Answer } from '../../../supervisor/coordination/work-model.ts';
import { generator, type LedgerHarness } from './harness.ts';
import { LedgerModel } from './model.ts';

/** More by command: LEDGER_HISTORIES=1000 npx vitest run test/unit/coordination. */
const HISTORIES = Number(process.env.LEDGER_HISTORIES ?? 12);
const STEPS = 60;
const MAX_ATTEMPTS = 3;
/** Times in the histories are whole hours, so that the seconds a run takes make no difference. */
const HOUR = 3_600_000;
const TTL_MS = 1.5 * HOUR;
const HOLDERS = ['a', 'b'];
const KEYS = ['k0', 'k1', 'k2', 'k3', 'k4'];
const REASONS = ['drain', 'crashed', 'budget: tokens', 'stalled'];

interface KnownLease {
  readonly real: string;
  readonly model: string;
  readonly holder: string;
}

export function historyRules(h: LedgerHarness): void {
  it('answers random histories as the work machine does', async () => {
    for (let seed = 1; seed <= HISTORIES; seed++) {
      await h.start({ maxAttempts: MAX_ATTEMPTS });
      await history(h, seed);
    }
  });
}

/** Runs one history on the ledger and on the model, and compares every answer and every state. */
async function history(h: LedgerHarness, seed: number): Promise<void> {
  const random = generator(seed);
  const pick = <T>(values: readonly T[]): T => {
    const value = values[random(values.length)];
    if (value === undefined) throw new Error('nothing to pick from');
    return value;
  };
  const model = new LedgerModel(MAX_ATTEMPTS);
  const leases: KnownLease[] = [];
  for (let index = 0; index < STEPS; index++) {
    const where = `seed ${seed}, step ${index}`;
    const key = pick(KEYS);
    const holder = pick(HOLDERS);
    switch (random(7)) {
      case 0:
      case 1: {
        const real = await h.claim(key, holder, TTL_MS);
        const wanted = model.claim(key, holder, TTL_MS);
        if (wanted.type === 'granted' && real.granted) {
          expect(real.attempt, where).toBe(wanted.attempt);
          const known = leases.find((lease) => lease.real === real.leaseId);
          expect(known?.model ?? null, where).toBe(wanted.again ? wanted.lease.leaseId : null);
          leases.push({ real: real.leaseId, model: wanted.lease.leaseId, holder });
        } else {
          expect(real.granted ? 'granted' : real.heldBy, where).toBe(
            wanted.type === 'held' ? wanted.by : wanted.type,
          );
        }
        break;
      }
      case 2:
      case 3: {
        if (leases.length === 0) break;
        const lease = pick(leases);
        const who = random(4) === 0 ? holder : lease.holder;
        const type = pick(['renew', 'ack', 'release'] as const);
        const reason = pick(REASONS);
        const presented = { leaseId: lease.real, holder: who };
        const real =
          type === 'renew'
            ? await h.ledger.renew({ ...presented, ttlMs: TTL_MS })
            : type === 'ack'
              ? await h.ledger.ack({ ...presented, result: JSON.stringify(reason) })
              : await h.ledger.release({ ...presented, reason });
        const said = type === 'ack' ? JSON.stringify(reason) : reason;
        compare(
          real,
          model.settle(type, { leaseId: lease.model, holder: who }, said, TTL_MS),
          `${where} ${type}`,
        );
        break;
      }
      case 4: {
        const delayMs = random(3) === 0 ? 2 * HOUR : 0;
        const dependsOn = random(3) === 0 ? [pick(KEYS)] : [];
        const real = await h.submit(key, { delayMs, dependsOn });
        expect(real.accepted ? real.created : null, where).toBe(model.submit(key, delayMs, dependsOn));
        break;
      }
      case 5: {
        const action = pick(['requeue', 'drop'] as const);
        compare(await h.ledger[action](key), model.manage(action, key), `${where} ${action}`);
        break;
      }
      case 6:
        await h.fixture.advance(HOUR);
        model.now += HOUR;
        break;
    }
  }
  while ((await h.ledger.tend()).more);
  model.tick();
  for (const [key, work] of model.states) {
    const record = await h.ledger.find(key);
    expect(
      { key, state: record?.state, attempt: record?.attempt, lastError: record?.lastError },
      `seed ${seed}`,
    ).toEqual({
      key,
      state: work.state.at,
      attempt: work.attempt,
      lastError: work.lastError,
    });
    if (work.state.at === 'done') expect(record?.result).toBe(work.state.result);
  }
}

function compare(real: SettleAnswer, wanted: Answer, where: string): void {
  expect(real.ok ? 'ok' : real.reason, where).toBe(wanted.type === 'refused' ? wanted.reason : wanted.type);
}
