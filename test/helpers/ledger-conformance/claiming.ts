import { describe, expect, it } from 'vitest';
import { granted, hold, type LedgerHarness, TTL } from './harness.ts';

export function claimingRules(h: LedgerHarness): void {
  describe('claiming', () => {
    it('creates an item nobody submitted', async () => {
      const answer = await h.claim('k');
      expect(answer).toMatchObject({ granted: true, attempt: 1, expiresInMs: TTL });
      expect(await h.ledger.find('k')).toMatchObject({ item: 'item:k', state: 'leased', holder: 'a' });
      expect(await h.ledger.stats()).toMatchObject({ pending: 0, claimed: 1 });
    });

    it('grants one of many simultaneous claims', async () => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) => h.claim('k', `holder-${index}`)),
      );
      const winners = answers.flatMap((answer, index) => (answer.granted ? [`holder-${index}`] : []));
      expect(winners).toHaveLength(1);
      for (const answer of answers) {
        if (!answer.granted) expect(answer.heldBy).toBe(winners[0]);
      }
    });

    it('grants one of many simultaneous claims over several connections', async () => {
      const others = [h.ledger, await h.fixture.again(), await h.fixture.again()];
      const request = (index: number) => ({ key: 'k', item: 'k', holder: `h${index}`, ttlMs: TTL });
      const answers = await Promise.all(
        Array.from({ length: 30 }, (_, index) => (others[index % 3] ?? h.ledger).claim(request(index))),
      );
      expect(answers.filter((answer) => answer.granted)).toHaveLength(1);
    });

    it('gives a holder that asks again its own lease with the time that is left', async () => {
      const first = granted(await h.claim('k'));
      await h.fixture.advance(10_000);
      const second = granted(await h.claim('k'));
      expect(second).toMatchObject({
        leaseId: first.leaseId,
        fencingToken: first.fencingToken,
        attempt: 1,
      });
      expect(second.expiresInMs).toBeLessThanOrEqual(TTL - 10_000);
      expect(second.expiresInMs).toBeGreaterThan(0);
    });

    it('says who holds an item and when to ask again', async () => {
      await h.claim('k', 'a');
      const answer = await h.claim('k', 'b');
      expect(answer).toMatchObject({ granted: false, heldBy: 'a' });
      if (!answer.granted) {
        expect(answer.retryAfterMs).toBeGreaterThan(0);
        expect(answer.retryAfterMs).toBeLessThanOrEqual(TTL);
      }
    });

    it('answers <acked> for a done item and <deadletter> for one given up', async () => {
      await h.ledger.ack({ ...hold('a', granted(await h.claim('done'))), result: null });
      expect(await h.claim('done', 'b')).toMatchObject({ granted: false, heldBy: '<acked>' });
      await h.start({ maxAttempts: 1 });
      await h.ledger.release({ ...hold('a', granted(await h.claim('bad'))), reason: 'crashed' });
      expect(await h.claim('bad', 'b')).toMatchObject({ granted: false, heldBy: '<deadletter>' });
    });

    it('grants a fencing token larger than every one before it', async () => {
      const tokens: number[] = [];
      for (let round = 0; round < 5; round++) {
        const grant = granted(await h.claim('k', `h${round}`));
        tokens.push(grant.fencingToken);
        await h.ledger.release({ ...hold(`h${round}`, grant), reason: 'drain' });
      }
      expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
      expect(new Set(tokens).size).toBe(5);
    });
  });

  describe('expiry', () => {
    it('lets another claim once the lease has run out, by the clock of the ledger', async () => {
      const first = granted(await h.claim('k', 'a', 5_000));
      await h.fixture.advance(4_000);
      expect((await h.claim('k', 'b')).granted).toBe(false);
      await h.fixture.advance(1_001);
      const second = granted(await h.claim('k', 'b'));
      expect(second.attempt).toBe(2);
      expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    });

    it('refuses everything of a holder that slept past its lease', async () => {
      const late = hold('a', granted(await h.claim('k', 'a', 5_000)));
      await h.fixture.advance(5_001);
      expect(await h.ledger.ack({ ...late, result: '"late"' })).toEqual({ ok: false, reason: 'expired' });
      const current = granted(await h.claim('k', 'b'));
      expect(await h.ledger.renew({ ...late, ttlMs: TTL })).toEqual({ ok: false, reason: 'not_current' });
      expect(await h.ledger.ack({ ...late, result: '"late"' })).toEqual({ ok: false, reason: 'not_current' });
      expect(await h.ledger.release({ ...late, reason: 'x' })).toEqual({ ok: false, reason: 'not_current' });
      expect(await h.ledger.ack({ ...hold('b', current), result: '"b"' })).toMatchObject({ ok: true });
      expect(await h.ledger.find('k')).toMatchObject({ state: 'done', holder: 'b', result: '"b"' });
    });

    it('keeps a renewed lease', async () => {
      const lease = hold('a', granted(await h.claim('k', 'a', 5_000)));
      for (let round = 0; round < 4; round++) {
        await h.fixture.advance(3_000);
        expect(await h.ledger.renew({ ...lease, ttlMs: 5_000 })).toEqual({ ok: true, expiresInMs: 5_000 });
      }
      expect((await h.claim('k', 'b')).granted).toBe(false);
    });

    it('notices expired leases without being asked about them', async () => {
      await h.claim('k', 'a', 5_000);
      await h.fixture.advance(5_001);
      expect(await h.ledger.tend()).toMatchObject({ expired: 1, more: false });
      expect(await h.ledger.stats()).toMatchObject({ pending: 1, claimed: 0 });
      expect(await h.ledger.tend()).toMatchObject({ expired: 0, woken: 0 });
    });

    it('dead-letters an item whose holders die each time, and lets others proceed', async () => {
      await h.start({ maxAttempts: 3 });
      for (const holder of ['a', 'b', 'c']) {
        granted(await h.claim('poison', holder, 1_000));
        await h.fixture.advance(1_001);
      }
      await h.ledger.tend();
      const record = await h.ledger.find('poison');
      expect(record).toMatchObject({ state: 'dead_letter', attempt: 3 });
      expect(record?.lastError).toContain('c expired');
      expect((await h.claim('other')).granted).toBe(true);
    });

    it('dead-letters an item whose holder restarts under its name and dies each time', async () => {
      await h.start({ maxAttempts: 3 });
      let rounds = 0;
      for (; rounds < 20; rounds++) {
        const answer = await h.claim('poison', 'a', 5_000);
        if (!answer.granted) break;
        await h.fixture.advance(1_000);
        await h.ledger.renew({ ...hold('a', answer), ttlMs: 5_000 });
      }
      expect(rounds).toBe(3);
      expect(await h.state('poison')).toBe('dead_letter');
      expect(await h.ledger.stats()).toMatchObject({ claimed: 0, deadLetter: 1 });
    });
  });
}
