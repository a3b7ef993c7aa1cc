import { expect } from 'vitest';
import type { Ledger } from '../../../supervisor/coordination/ledger.ts';
import type { LedgerCall } from './simulated-ledger.ts';
import { simulate } from './world.ts';

/** More than any history of a simulated fleet needs: whether attempts are spent is not its matter. */
export const REPLAY_ATTEMPTS = 1_000;

/**
 * Makes every call of the history of one simulated fleet on a real, empty ledger, and expects the
 * answers of the simulated one.
 *
 * @param setClock sets the ledger's clock, ms
 * @returns how many calls that were
 */
export async function replay(
  seed: number,
  ledger: Ledger,
  setClock: (now: number) => Promise<void> | void,
): Promise<number> {
  const { history } = simulate(seed);
  const leases = new Map<string, string>();
  for (const [index, call] of history.entries()) {
    await setClock(call.at);
    const where = `seed ${seed}, call ${index}: ${JSON.stringify(call)}`;
    expect(await repeat(ledger, call, leases), where).toBe(call.answer);
  }
  return history.length;
}

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
