import { describe, expect, it } from 'vitest';
import { hold, type LedgerHarness, TTL } from './harness.ts';

export function queueRules(h: LedgerHarness): void {
  describe('choosing the next item', () => {
    it('hands items out in the order they came', async () => {
      for (const key of ['one', 'two', 'three']) {
        await h.submit(key);
        await h.fixture.advance(1);
      }
      expect([await h.nextKey(), await h.nextKey(), await h.nextKey(), await h.nextKey()]).toEqual([
        'one',
        'two',
        'three',
        null,
      ]);
    });

    it('hands out several at a time, each once', async () => {
      for (let index = 0; index < 10; index++) await h.submit(`k${index}`);
      const batches = await Promise.all([
        h.next('a', { max: 4 }),
        h.next('b', { max: 4 }),
        h.next('c', { max: 4 }),
      ]);
      const keys = batches.flat().map((work) => work.workId);
      expect(keys).toHaveLength(10);
      expect(new Set(keys).size).toBe(10);
      for (const work of batches.flat()) expect(work).toMatchObject({ attempt: 1, expiresInMs: TTL });
    });

    it('prefers what is more urgent among items of about one age', async () => {
      await h.submit('low', { priority: 'low' });
      await h.submit('normal');
      await h.submit('high', { priority: 'high' });
      expect([await h.nextKey(), await h.nextKey(), await h.nextKey()]).toEqual(['high', 'normal', 'low']);
    });

    it('lets age overtake urgency, so that low never starves', async () => {
      await h.submit('low', { priority: 'low' });
      let served = 0;
      for (; served < 40; served++) {
        await h.fixture.advance(10_000);
        await h.submit(`high-${served}`, { priority: 'high' });
        await h.submit(`more-${served}`, { priority: 'high' });
        const [work] = await h.next();
        if (work === undefined || work.workId === 'low') break;
        await h.ledger.ack({ ...hold('a', work), result: null });
      }
      expect(served).toBeLessThan(40);
      expect(served).toBeGreaterThan(10);
    });

    it('takes only the kinds and tenants asked for', async () => {
      await h.submit('mail', { kind: 'mail', tenant: 't1' });
      await h.submit('scan', { kind: 'scan', tenant: 't2' });
      expect(await h.next('a', { kinds: ['fax'] })).toEqual([]);
      expect((await h.next('a', { kinds: ['fax', 'scan'] })).map((work) => work.workId)).toEqual(['scan']);
      expect(await h.next('a', { tenants: ['t2'] })).toEqual([]);
      const [mail] = await h.next('a', { tenants: ['t1'] });
      expect(mail).toMatchObject({ workId: 'mail', kind: 'mail', tenant: 't1', item: 'item:mail' });
    });

    it('serves tenants in turn, however much one of them has waiting', async () => {
      for (let index = 0; index < 20; index++) await h.submit(`big-${index}`, { tenant: 'big' });
      for (let index = 0; index < 3; index++) await h.submit(`small-${index}`, { tenant: 'small' });
      const order: string[] = [];
      for (let index = 0; index < 8; index++) order.push((await h.next())[0]?.tenant ?? '');
      expect(order.filter((tenant) => tenant === 'small')).toHaveLength(3);
      expect(order.slice(0, 6).filter((tenant) => tenant === 'small')).toHaveLength(3);
    });

    it('holds a tenant to its quota, in both ways of claiming', async () => {
      await h.start({ tenantQuota: 2 });
      for (let index = 0; index < 4; index++) await h.submit(`k${index}`, { tenant: 't' });
      await h.submit('other', { tenant: 'u' });
      const first = await h.next('a', { max: 10 });
      expect(first.map((work) => work.tenant).sort()).toEqual(['t', 't', 'u']);
      expect(await h.next('a', { max: 10 })).toEqual([]);
      const waiting = ['k0', 'k1', 'k2', 'k3'].filter((key) => first.every((work) => work.workId !== key));
      expect(await h.claim(waiting[0] ?? '', 'b')).toMatchObject({ granted: false, heldBy: '<quota>' });
      const mine = first.find((work) => work.tenant === 't');
      if (mine === undefined) throw new Error('no lease of the tenant');
      await h.ledger.ack({ ...hold('a', mine), result: null });
      expect((await h.next('a', { max: 10 })).map((work) => work.tenant)).toEqual(['t']);
    });

    it('waits for a delayed item until its time has come', async () => {
      await h.submit('later', { delayMs: 10_000 });
      expect(await h.nextKey()).toBeNull();
      expect(await h.claim('later')).toMatchObject({ granted: false, heldBy: '<waiting>' });
      expect(await h.ledger.stats()).toMatchObject({ pending: 1, oldestAgeMs: 0 });
      await h.fixture.advance(10_001);
      expect(await h.nextKey()).toBe('later');
    });

    it('pauses before it offers a failed item again, longer each time', async () => {
      await h.submit('k', { maxAttempts: 10 });
      const pauses: number[] = [];
      for (let round = 0; round < 4; round++) {
        let waited = 0;
        let work = (await h.next())[0];
        while (work === undefined) {
          await h.fixture.advance(250);
          waited += 250;
          work = (await h.next())[0];
        }
        pauses.push(waited);
        await h.ledger.release({ ...hold('a', work), reason: 'crashed' });
      }
      expect(pauses[0]).toBe(0);
      expect(pauses[1]).toBeGreaterThanOrEqual(250);
      expect(pauses[2]).toBeGreaterThan(pauses[1] ?? 0);
      expect(pauses[3]).toBeGreaterThan(pauses[2] ?? 0);
    });
  });
}
