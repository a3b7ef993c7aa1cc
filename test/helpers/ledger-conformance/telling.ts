import { describe, expect, it } from 'vitest';
import { generator, granted, hold, type LedgerHarness, TTL } from './harness.ts';

export function tellingRules(h: LedgerHarness): void {
  describe('telling', () => {
    it('counts what waits, is claimed, is done and is given up', async () => {
      await h.start({ maxAttempts: 1 });
      for (const key of ['a', 'b', 'c', 'd']) await h.submit(key);
      await h.submit('later', { delayMs: 60_000 });
      await h.fixture.advance(2_000);
      await h.ledger.ack({ ...hold('x', granted(await h.claim('a', 'x'))), result: null });
      await h.ledger.release({ ...hold('x', granted(await h.claim('b', 'x'))), reason: 'bad' });
      await h.claim('c', 'x');
      const stats = await h.ledger.stats();
      expect(stats).toMatchObject({ pending: 2, claimed: 1, deadLetter: 1, done: 1 });
      expect(stats.oldestAgeMs).toBeGreaterThanOrEqual(2_000);
      expect((await h.ledger.pending(10)).map((record) => record.workId)).toEqual(['d']);
    });

    it('tells listeners when items become claimable, and not after they stop listening', async () => {
      let told = 0;
      let wake = (): void => {};
      const heard = async (action: () => Promise<unknown>): Promise<void> => {
        const before = told;
        const news = new Promise<void>((resolve) => {
          wake = resolve;
        });
        await action();
        if (told === before) await news;
      };
      const silence = h.ledger.onPending(() => {
        told += 1;
        wake();
      });
      await heard(() => h.submit('k'));
      const lease = hold('a', granted(await h.claim('k', 'a', 5_000)));
      await heard(() => h.ledger.release({ ...lease, reason: 'drain' }));
      await h.claim('k', 'b', 5_000);
      await h.fixture.advance(6_000);
      await h.ledger.tend();
      await h.fixture.advance(1_000);
      await heard(() => h.ledger.tend());
      silence();
      const last = told;
      await h.submit('silent');
      await h.ledger.ping();
      expect(told).toBe(last);
    });

    it('lists items of a state a page at a time, to the end', async () => {
      for (let index = 0; index < 25; index++) await h.submit(`k${index}`);
      for (let index = 0; index < 25; index += 2) await h.claim(`k${index}`);
      const keys: string[] = [];
      for (let after: number | null = 0; after !== null; ) {
        const page = await h.ledger.list({ state: 'ready', after, limit: 5 });
        expect(page.records.length).toBeLessThanOrEqual(5);
        keys.push(...page.records.map((record) => record.workId));
        after = page.next;
      }
      expect(keys).toEqual(Array.from({ length: 12 }, (_, index) => `k${2 * index + 1}`));
    });

    it('keeps everything for whoever opens the database next', async () => {
      await h.submit('waits', { kind: 'mail', tenant: 't', priority: 'low' });
      const lease = hold('a', granted(await h.claim('held')));
      await h.ledger.close();
      h.ledger = await h.fixture.again();
      expect(await h.ledger.find('waits')).toMatchObject({
        kind: 'mail',
        tenant: 't',
        priority: 'low',
        state: 'ready',
      });
      expect(await h.ledger.ack({ ...lease, result: '7' })).toMatchObject({ ok: true });
      expect(await h.ledger.find('held')).toMatchObject({ state: 'done', result: '7' });
      await expect(
        h.fixture.ledger.claim({ key: 'x', item: 'x', holder: 'a', ttlMs: 1 }),
      ).rejects.toMatchObject({
        code: 'LEDGER_UNAVAILABLE',
      });
    });

    it('takes any text for keys, items, holders and results', async () => {
      const odd = `e\u0301 "quotes" 'and' \u2028 \u{1F600} % _ \\ {} ${'\u{1F600}'.repeat(100)} -- ; $1`;
      await h.submit(odd, { item: odd.repeat(20), kind: odd.slice(0, 60), tenant: odd.slice(0, 60) });
      const [work] = await h.ledger.claimNext({
        holder: odd,
        ttlMs: TTL,
        max: 1,
        kinds: null,
        tenants: null,
      });
      if (work === undefined) throw new Error('nothing was offered');
      expect(work).toMatchObject({ workId: odd, item: odd.repeat(20) });
      await h.ledger.ack({ ...hold(odd, work), result: JSON.stringify({ odd }) });
      expect(JSON.parse((await h.ledger.find(odd))?.result ?? '')).toEqual({ odd });
    });
  });
  it('keeps its counts true over many mixed histories', async () => {
    await h.start({ maxAttempts: 2, tenantQuota: 5 });
    const random = generator(12_345);
    const held: { leaseId: string; holder: string }[] = [];
    const take = (): { leaseId: string; holder: string } | undefined =>
      held.splice(random(held.length + 1), 1)[0];
    for (let round = 0; round < 400; round++) {
      const key = `k${random(60)}`;
      const holder = `h${random(4)}`;
      const lease = take();
      switch (random(8)) {
        case 0:
        case 1:
          await h.submit(key, { tenant: `t${random(3)}`, priority: 'low', delayMs: random(3) * 500 });
          break;
        case 2:
          for (const work of await h.next(holder, { max: 3 })) held.push(hold(holder, work));
          break;
        case 3: {
          const answer = await h.claim(key, holder, 3_000);
          if (answer.granted) held.push(hold(holder, answer));
          break;
        }
        case 4:
          if (lease !== undefined) await h.ledger.ack({ ...lease, result: null });
          break;
        case 5:
          if (lease !== undefined)
            await h.ledger.release({ ...lease, reason: random(2) === 0 ? 'drain' : 'x' });
          break;
        case 6:
          await h.fixture.advance(random(2_000));
          await h.ledger.tend();
          break;
        case 7:
          if (random(2) === 0) await h.ledger.requeue(key);
          else await h.ledger.drop(key);
          break;
      }
    }
    const { records } = await h.ledger.list({ state: null, after: 0, limit: 1_000 });
    const count = (...states: string[]): number =>
      records.filter(({ state }) => states.includes(state)).length;
    expect(await h.ledger.stats()).toMatchObject({
      pending: count('submitted', 'ready'),
      claimed: count('leased'),
      done: count('done'),
      deadLetter: count('dead_letter'),
    });
    expect(records.length).toBeGreaterThan(20);
  });
}
