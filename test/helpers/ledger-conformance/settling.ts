import { describe, expect, it } from 'vitest';
import { granted, hold, type LedgerHarness, TTL } from './harness.ts';

export function settlingRules(h: LedgerHarness): void {
  describe('settling', () => {
    it('stores the first result and takes a repeated ack of its holder as a no-op', async () => {
      const lease = hold('a', granted(await h.claim('k')));
      expect(await h.ledger.ack({ ...lease, result: '{"n":1}' })).toEqual({ ok: true, expiresInMs: null });
      expect(await h.ledger.ack({ ...lease, result: '{"n":2}' })).toEqual({ ok: true, expiresInMs: null });
      expect(await h.ledger.find('k')).toMatchObject({ state: 'done', result: '{"n":1}' });
      expect(await h.ledger.stats()).toMatchObject({ pending: 0, claimed: 0, done: 1 });
    });

    it('lets nobody settle the lease of another', async () => {
      const grant = granted(await h.claim('k', 'a'));
      const stranger = hold('b', grant);
      expect(await h.ledger.renew({ ...stranger, ttlMs: 1 })).toEqual({ ok: false, reason: 'not_holder' });
      expect(await h.ledger.ack({ ...stranger, result: null })).toEqual({ ok: false, reason: 'not_holder' });
      expect(await h.ledger.release({ ...stranger, reason: '' })).toEqual({
        ok: false,
        reason: 'not_holder',
      });
      const forged = { leaseId: `${grant.leaseId}x`, holder: 'a' };
      expect(await h.ledger.ack({ ...forged, result: null })).toEqual({ ok: false, reason: 'not_current' });
      for (const leaseId of ['', 'nonsense', '999999-x', `${'9'.repeat(40)}-x`]) {
        expect(await h.ledger.ack({ leaseId, holder: 'a', result: null })).toEqual({
          ok: false,
          reason: 'unknown',
        });
      }
      expect(await h.state('k')).toBe('leased');
    });

    it('does not resurrect an acked item when a renewal or release comes late', async () => {
      const lease = hold('a', granted(await h.claim('k')));
      await h.ledger.ack({ ...lease, result: null });
      expect(await h.ledger.renew({ ...lease, ttlMs: TTL })).toEqual({ ok: false, reason: 'done' });
      expect(await h.ledger.release({ ...lease, reason: 'x' })).toEqual({ ok: false, reason: 'done' });
      expect(await h.state('k')).toBe('done');
    });

    it('makes a released item claimable at once', async () => {
      const lease = hold('a', granted(await h.claim('k', 'a')));
      expect(await h.ledger.release({ ...lease, reason: 'crashed' })).toMatchObject({ ok: true });
      expect(await h.claim('k', 'b')).toMatchObject({ granted: true, attempt: 2 });
    });

    it('consumes no attempt when a drain releases, however often', async () => {
      await h.start({ maxAttempts: 3 });
      for (let round = 0; round < 5; round++) {
        const lease = hold('a', granted(await h.claim('k')));
        await h.ledger.release({ ...lease, reason: 'drain' });
      }
      expect(await h.claim('k', 'b')).toMatchObject({ granted: true, attempt: 1 });
    });

    it('keeps the reason of the release that used up the last attempt', async () => {
      await h.start({ maxAttempts: 2 });
      for (const reason of ['first', 'second']) {
        await h.ledger.release({ ...hold('a', granted(await h.claim('k'))), reason });
      }
      expect(await h.ledger.find('k')).toMatchObject({
        state: 'dead_letter',
        lastError: 'second',
        attempt: 2,
      });
    });
  });

  describe('dead letters', () => {
    it('lists, requeues and drops them', async () => {
      await h.start({ maxAttempts: 1 });
      for (const key of ['a', 'b', 'c']) {
        await h.ledger.release({ ...hold('x', granted(await h.claim(key, 'x'))), reason: `${key} failed` });
      }
      const list = async (after = 0, limit = 10) =>
        await h.ledger.list({ state: 'dead_letter', after, limit });
      expect((await list()).records.map((record) => record.lastError)).toEqual([
        'a failed',
        'b failed',
        'c failed',
      ]);
      const first = await list(0, 1);
      expect(first.records).toHaveLength(1);
      const rest = await list(first.next ?? 0, 2);
      expect(rest.records.map((record) => record.workId)).toEqual(['b', 'c']);
      expect((await list(rest.next ?? 0)).records).toEqual([]);
      expect(await h.ledger.requeue('a')).toMatchObject({ ok: true });
      expect(await h.ledger.drop('b')).toMatchObject({ ok: true });
      expect((await list()).records.map((record) => record.workId)).toEqual(['c']);
      expect(await h.claim('a', 'y')).toMatchObject({ granted: true, attempt: 1 });
      expect(await h.claim('b', 'y')).toMatchObject({ granted: false, heldBy: '<deadletter>' });
      expect(await h.ledger.requeue('a')).toEqual({ ok: false, reason: 'not_dead' });
      expect(await h.ledger.requeue('nobody')).toEqual({ ok: false, reason: 'unknown' });
      expect(await h.ledger.stats()).toMatchObject({ pending: 0, claimed: 1, deadLetter: 1 });
    });

    it('takes a dropped item from its holder, and starts anew when it is submitted again', async () => {
      const lease = hold('a', granted(await h.claim('k')));
      expect(await h.ledger.drop('k')).toMatchObject({ ok: true });
      expect(await h.ledger.renew({ ...lease, ttlMs: TTL })).toEqual({ ok: false, reason: 'not_current' });
      expect(await h.ledger.ack({ ...lease, result: null })).toMatchObject({ ok: false });
      expect(await h.submit('k')).toMatchObject({ created: true });
      expect(await h.claim('k', 'b')).toMatchObject({ granted: true, attempt: 1 });
    });

    it('does not drop what is done', async () => {
      await h.ledger.ack({ ...hold('a', granted(await h.claim('k'))), result: '1' });
      expect(await h.ledger.drop('k')).toEqual({ ok: false, reason: 'done' });
      expect(await h.ledger.find('k')).toMatchObject({ state: 'done', result: '1' });
    });
  });
}
