import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type ClaimAnswer,
  DEFAULT_POLICY,
  type Grant,
  type Ledger,
  type LedgerPolicy,
  type SubmitRequest,
} from '../../supervisor/coordination/ledger.ts';

/** What the suite needs of an adapter under test. */
export interface LedgerFixture {
  readonly ledger: Ledger;
  /** Opens the same database once more, as another process would. */
  again(): Promise<Ledger>;
  /** Moves the ledger's clock forward. */
  advance(ms: number): Promise<void>;
  /** Closes every ledger opened here and removes the database. */
  dispose(): Promise<void>;
}

export type OpenFixture = (policy: LedgerPolicy) => Promise<LedgerFixture>;

const TTL = 30_000;

/** A granted claim, or a failure that shows the answer. */
export function granted(answer: ClaimAnswer): Grant {
  if (!answer.granted) throw new Error(`not granted: held by ${answer.heldBy}`);
  return answer;
}

/** The rules of supervisor/coordination/ledger.ts, for any adapter. */
export function ledgerConformance(name: string, open: OpenFixture): void {
  describe(`ledger conformance: ${name}`, () => {
    let fixture: LedgerFixture;
    let ledger: Ledger;
    const start = async (policy: Partial<LedgerPolicy> = {}): Promise<void> => {
      await fixture?.dispose();
      fixture = await open({ ...DEFAULT_POLICY, ...policy });
      ledger = fixture.ledger;
    };
    const claim = (key: string, holder = 'a', ttlMs = TTL): Promise<ClaimAnswer> =>
      ledger.claim({ key, item: `item:${key}`, holder, ttlMs });
    const submit = (key: string, more: Partial<SubmitRequest> = {}) =>
      ledger.submit({
        key,
        item: `item:${key}`,
        kind: 'default',
        tenant: 'default',
        priority: 'normal',
        maxAttempts: null,
        delayMs: 0,
        dependsOn: [],
        ...more,
      });
    const next = async (holder = 'a', more: { max?: number; kinds?: string[]; tenants?: string[] } = {}) => {
      const { max = 1, kinds = null, tenants = null } = more;
      return await ledger.claimNext({ holder, ttlMs: TTL, max, kinds, tenants });
    };
    const nextKey = async (): Promise<string | null> => (await next())[0]?.workId ?? null;
    const state = async (key: string): Promise<string | null> => (await ledger.find(key))?.state ?? null;

    beforeEach(() => start());
    afterEach(() => fixture.dispose());

    describe('claiming', () => {
      it('creates an item nobody submitted', async () => {
        const answer = await claim('k');
        expect(answer).toMatchObject({ granted: true, attempt: 1, expiresInMs: TTL });
        expect(await ledger.find('k')).toMatchObject({ item: 'item:k', state: 'leased', holder: 'a' });
        expect(await ledger.stats()).toMatchObject({ pending: 0, claimed: 1 });
      });

      it('grants one of many simultaneous claims', async () => {
        const answers = await Promise.all(
          Array.from({ length: 20 }, (_, index) => claim('k', `holder-${index}`)),
        );
        const winners = answers.flatMap((answer, index) => (answer.granted ? [`holder-${index}`] : []));
        expect(winners).toHaveLength(1);
        for (const answer of answers) {
          if (!answer.granted) expect(answer.heldBy).toBe(winners[0]);
        }
      });

      it('grants one of many simultaneous claims over several connections', async () => {
        const others = [ledger, await fixture.again(), await fixture.again()];
        const request = (index: number) => ({ key: 'k', item: 'k', holder: `h${index}`, ttlMs: TTL });
        const answers = await Promise.all(
          Array.from({ length: 30 }, (_, index) => (others[index % 3] ?? ledger).claim(request(index))),
        );
        expect(answers.filter((answer) => answer.granted)).toHaveLength(1);
      });

      it('gives a holder that asks again its own lease with the time that is left', async () => {
        const first = granted(await claim('k'));
        await fixture.advance(10_000);
        const second = granted(await claim('k'));
        expect(second).toMatchObject({
          leaseId: first.leaseId,
          fencingToken: first.fencingToken,
          attempt: 1,
        });
        expect(second.expiresInMs).toBeLessThanOrEqual(TTL - 10_000);
        expect(second.expiresInMs).toBeGreaterThan(0);
      });

      it('says who holds an item and when to ask again', async () => {
        await claim('k', 'a');
        const answer = await claim('k', 'b');
        expect(answer).toMatchObject({ granted: false, heldBy: 'a' });
        if (!answer.granted) {
          expect(answer.retryAfterMs).toBeGreaterThan(0);
          expect(answer.retryAfterMs).toBeLessThanOrEqual(TTL);
        }
      });

      it('answers <acked> for a done item and <deadletter> for one given up', async () => {
        await ledger.ack({ ...hold('a', granted(await claim('done'))), result: null });
        expect(await claim('done', 'b')).toMatchObject({ granted: false, heldBy: '<acked>' });
        await start({ maxAttempts: 1 });
        await ledger.release({ ...hold('a', granted(await claim('bad'))), reason: 'crashed' });
        expect(await claim('bad', 'b')).toMatchObject({ granted: false, heldBy: '<deadletter>' });
      });

      it('grants a fencing token larger than every one before it', async () => {
        const tokens: number[] = [];
        for (let round = 0; round < 5; round++) {
          const grant = granted(await claim('k', `h${round}`));
          tokens.push(grant.fencingToken);
          await ledger.release({ ...hold(`h${round}`, grant), reason: 'drain' });
        }
        expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
        expect(new Set(tokens).size).toBe(5);
      });
    });

    describe('expiry', () => {
      it('lets another claim once the lease has run out, by the clock of the ledger', async () => {
        const first = granted(await claim('k', 'a', 5_000));
        await fixture.advance(4_000);
        expect((await claim('k', 'b')).granted).toBe(false);
        await fixture.advance(1_001);
        const second = granted(await claim('k', 'b'));
        expect(second.attempt).toBe(2);
        expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
      });

      it('refuses everything of a holder that slept past its lease', async () => {
        const late = hold('a', granted(await claim('k', 'a', 5_000)));
        await fixture.advance(5_001);
        expect(await ledger.ack({ ...late, result: '"late"' })).toEqual({ ok: false, reason: 'expired' });
        const current = granted(await claim('k', 'b'));
        expect(await ledger.renew({ ...late, ttlMs: TTL })).toEqual({ ok: false, reason: 'not_current' });
        expect(await ledger.ack({ ...late, result: '"late"' })).toEqual({ ok: false, reason: 'not_current' });
        expect(await ledger.release({ ...late, reason: 'x' })).toEqual({ ok: false, reason: 'not_current' });
        expect(await ledger.ack({ ...hold('b', current), result: '"b"' })).toMatchObject({ ok: true });
        expect(await ledger.find('k')).toMatchObject({ state: 'done', holder: 'b', result: '"b"' });
      });

      it('keeps a renewed lease', async () => {
        const lease = hold('a', granted(await claim('k', 'a', 5_000)));
        for (let round = 0; round < 4; round++) {
          await fixture.advance(3_000);
          expect(await ledger.renew({ ...lease, ttlMs: 5_000 })).toEqual({ ok: true, expiresInMs: 5_000 });
        }
        expect((await claim('k', 'b')).granted).toBe(false);
      });

      it('notices expired leases without being asked about them', async () => {
        await claim('k', 'a', 5_000);
        await fixture.advance(5_001);
        expect(await ledger.tend()).toMatchObject({ expired: 1, more: false });
        expect(await ledger.stats()).toMatchObject({ pending: 1, claimed: 0 });
        expect(await ledger.tend()).toMatchObject({ expired: 0, woken: 0 });
      });

      it('dead-letters an item whose holders die each time, and lets others proceed', async () => {
        await start({ maxAttempts: 3 });
        for (const holder of ['a', 'b', 'c']) {
          granted(await claim('poison', holder, 1_000));
          await fixture.advance(1_001);
        }
        await ledger.tend();
        const record = await ledger.find('poison');
        expect(record).toMatchObject({ state: 'dead_letter', attempt: 3 });
        expect(record?.lastError).toContain('c expired');
        expect((await claim('other')).granted).toBe(true);
      });

      it('dead-letters an item whose holder restarts under its name and dies each time', async () => {
        await start({ maxAttempts: 3 });
        let rounds = 0;
        for (; rounds < 20; rounds++) {
          const answer = await claim('poison', 'a', 5_000);
          if (!answer.granted) break;
          await fixture.advance(1_000);
          await ledger.renew({ ...hold('a', answer), ttlMs: 5_000 });
        }
        expect(rounds).toBe(3);
        expect(await state('poison')).toBe('dead_letter');
        expect(await ledger.stats()).toMatchObject({ claimed: 0, deadLetter: 1 });
      });
    });

    describe('settling', () => {
      it('stores the first result and takes a repeated ack of its holder as a no-op', async () => {
        const lease = hold('a', granted(await claim('k')));
        expect(await ledger.ack({ ...lease, result: '{"n":1}' })).toEqual({ ok: true, expiresInMs: null });
        expect(await ledger.ack({ ...lease, result: '{"n":2}' })).toEqual({ ok: true, expiresInMs: null });
        expect(await ledger.find('k')).toMatchObject({ state: 'done', result: '{"n":1}' });
        expect(await ledger.stats()).toMatchObject({ pending: 0, claimed: 0, done: 1 });
      });

      it('lets nobody settle the lease of another', async () => {
        const grant = granted(await claim('k', 'a'));
        const stranger = hold('b', grant);
        expect(await ledger.renew({ ...stranger, ttlMs: 1 })).toEqual({ ok: false, reason: 'not_holder' });
        expect(await ledger.ack({ ...stranger, result: null })).toEqual({ ok: false, reason: 'not_holder' });
        expect(await ledger.release({ ...stranger, reason: '' })).toEqual({
          ok: false,
          reason: 'not_holder',
        });
        const forged = { leaseId: `${grant.leaseId}x`, holder: 'a' };
        expect(await ledger.ack({ ...forged, result: null })).toEqual({ ok: false, reason: 'not_current' });
        for (const leaseId of ['', 'nonsense', '999999-x', `${'9'.repeat(40)}-x`]) {
          expect(await ledger.ack({ leaseId, holder: 'a', result: null })).toEqual({
            ok: false,
            reason: 'unknown',
          });
        }
        expect(await state('k')).toBe('leased');
      });

      it('does not resurrect an acked item when a renewal or release comes late', async () => {
        const lease = hold('a', granted(await claim('k')));
        await ledger.ack({ ...lease, result: null });
        expect(await ledger.renew({ ...lease, ttlMs: TTL })).toEqual({ ok: false, reason: 'done' });
        expect(await ledger.release({ ...lease, reason: 'x' })).toEqual({ ok: false, reason: 'done' });
        expect(await state('k')).toBe('done');
      });

      it('makes a released item claimable at once', async () => {
        const lease = hold('a', granted(await claim('k', 'a')));
        expect(await ledger.release({ ...lease, reason: 'crashed' })).toMatchObject({ ok: true });
        expect(await claim('k', 'b')).toMatchObject({ granted: true, attempt: 2 });
      });

      it('consumes no attempt when a drain releases, however often', async () => {
        await start({ maxAttempts: 3 });
        for (let round = 0; round < 5; round++) {
          const lease = hold('a', granted(await claim('k')));
          await ledger.release({ ...lease, reason: 'drain' });
        }
        expect(await claim('k', 'b')).toMatchObject({ granted: true, attempt: 1 });
      });

      it('keeps the reason of the release that used up the last attempt', async () => {
        await start({ maxAttempts: 2 });
        for (const reason of ['first', 'second']) {
          await ledger.release({ ...hold('a', granted(await claim('k'))), reason });
        }
        expect(await ledger.find('k')).toMatchObject({
          state: 'dead_letter',
          lastError: 'second',
          attempt: 2,
        });
      });
    });

    describe('choosing the next item', () => {
      it('hands items out in the order they came', async () => {
        for (const key of ['one', 'two', 'three']) {
          await submit(key);
          await fixture.advance(1);
        }
        expect([await nextKey(), await nextKey(), await nextKey(), await nextKey()]).toEqual([
          'one',
          'two',
          'three',
          null,
        ]);
      });

      it('hands out several at a time, each once', async () => {
        for (let index = 0; index < 10; index++) await submit(`k${index}`);
        const batches = await Promise.all([
          next('a', { max: 4 }),
          next('b', { max: 4 }),
          next('c', { max: 4 }),
        ]);
        const keys = batches.flat().map((work) => work.workId);
        expect(keys).toHaveLength(10);
        expect(new Set(keys).size).toBe(10);
        for (const work of batches.flat()) expect(work).toMatchObject({ attempt: 1, expiresInMs: TTL });
      });

      it('prefers what is more urgent among items of about one age', async () => {
        await submit('low', { priority: 'low' });
        await submit('normal');
        await submit('high', { priority: 'high' });
        expect([await nextKey(), await nextKey(), await nextKey()]).toEqual(['high', 'normal', 'low']);
      });

      it('lets age overtake urgency, so that low never starves', async () => {
        await submit('low', { priority: 'low' });
        let served = 0;
        for (; served < 400; served++) {
          await fixture.advance(1_000);
          await submit(`high-${served}`, { priority: 'high' });
          await submit(`more-${served}`, { priority: 'high' });
          const [work] = await next();
          if (work === undefined || work.workId === 'low') break;
          await ledger.ack({ ...hold('a', work), result: null });
        }
        expect(served).toBeLessThan(400);
        expect(served).toBeGreaterThan(60);
      });

      it('takes only the kinds and tenants asked for', async () => {
        await submit('mail', { kind: 'mail', tenant: 't1' });
        await submit('scan', { kind: 'scan', tenant: 't2' });
        expect(await next('a', { kinds: ['fax'] })).toEqual([]);
        expect((await next('a', { kinds: ['fax', 'scan'] })).map((work) => work.workId)).toEqual(['scan']);
        expect(await next('a', { tenants: ['t2'] })).toEqual([]);
        const [mail] = await next('a', { tenants: ['t1'] });
        expect(mail).toMatchObject({ workId: 'mail', kind: 'mail', tenant: 't1', item: 'item:mail' });
      });

      it('serves tenants in turn, however much one of them has waiting', async () => {
        for (let index = 0; index < 20; index++) await submit(`big-${index}`, { tenant: 'big' });
        for (let index = 0; index < 3; index++) await submit(`small-${index}`, { tenant: 'small' });
        const order: string[] = [];
        for (let index = 0; index < 8; index++) order.push((await next())[0]?.tenant ?? '');
        expect(order.filter((tenant) => tenant === 'small')).toHaveLength(3);
        expect(order.slice(0, 6).filter((tenant) => tenant === 'small')).toHaveLength(3);
      });

      it('holds a tenant to its quota, in both ways of claiming', async () => {
        await start({ tenantQuota: 2 });
        for (let index = 0; index < 4; index++) await submit(`k${index}`, { tenant: 't' });
        await submit('other', { tenant: 'u' });
        const first = await next('a', { max: 10 });
        expect(first.map((work) => work.tenant).sort()).toEqual(['t', 't', 'u']);
        expect(await next('a', { max: 10 })).toEqual([]);
        const waiting = ['k0', 'k1', 'k2', 'k3'].filter((key) => first.every((work) => work.workId !== key));
        expect(await claim(waiting[0] ?? '', 'b')).toMatchObject({ granted: false, heldBy: '<quota>' });
        const mine = first.find((work) => work.tenant === 't');
        if (mine === undefined) throw new Error('no lease of the tenant');
        await ledger.ack({ ...hold('a', mine), result: null });
        expect((await next('a', { max: 10 })).map((work) => work.tenant)).toEqual(['t']);
      });

      it('waits for a delayed item until its time has come', async () => {
        await submit('later', { delayMs: 10_000 });
        expect(await nextKey()).toBeNull();
        expect(await claim('later')).toMatchObject({ granted: false, heldBy: '<waiting>' });
        expect(await ledger.stats()).toMatchObject({ pending: 1, oldestAgeMs: 0 });
        await fixture.advance(10_001);
        expect(await nextKey()).toBe('later');
      });

      it('pauses before it offers a failed item again, longer each time', async () => {
        await submit('k', { maxAttempts: 10 });
        const pauses: number[] = [];
        for (let round = 0; round < 4; round++) {
          let waited = 0;
          let work = (await next())[0];
          while (work === undefined) {
            await fixture.advance(250);
            waited += 250;
            work = (await next())[0];
          }
          pauses.push(waited);
          await ledger.release({ ...hold('a', work), reason: 'crashed' });
        }
        expect(pauses[0]).toBe(0);
        expect(pauses[1]).toBeGreaterThanOrEqual(250);
        expect(pauses[2]).toBeGreaterThan(pauses[1] ?? 0);
        expect(pauses[3]).toBeGreaterThan(pauses[2] ?? 0);
      });
    });

    describe('submitting', () => {
      it('knows a key again while it waits, runs and is done', async () => {
        expect(await submit('k')).toEqual({ accepted: true, workId: 'k', created: true });
        expect(await submit('k')).toMatchObject({ created: false });
        const lease = hold('a', granted(await claim('k')));
        expect(await submit('k')).toMatchObject({ created: false });
        await ledger.ack({ ...lease, result: null });
        expect(await submit('k')).toMatchObject({ created: false });
        expect(await ledger.stats()).toMatchObject({ pending: 0, done: 1 });
      });

      it('forgets a settled key after the dedupe horizon, and not before', async () => {
        await start({ dedupeHorizonMs: 60_000 });
        const first = granted(await claim('k'));
        await ledger.ack({ ...hold('a', first), result: '1' });
        await fixture.advance(59_000);
        await ledger.tend();
        expect(await submit('k')).toMatchObject({ created: false });
        await fixture.advance(1_001);
        expect(await ledger.tend()).toMatchObject({ forgotten: 1 });
        expect(await ledger.find('k')).toBeNull();
        const second = granted(await claim('k'));
        expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
        expect(await ledger.ack({ ...hold('a', first), result: '2' })).toMatchObject({ ok: false });
      });

      it('makes an item ready once everything it depends on is done', async () => {
        await submit('a');
        await submit('b');
        await submit('c', { dependsOn: ['a', 'b'] });
        await submit('d', { dependsOn: ['c', 'c'] });
        expect(await state('c')).toBe('submitted');
        expect(await claim('c')).toMatchObject({ granted: false, heldBy: '<waiting>' });
        const works = await next('x', { max: 10 });
        expect(works.map((work) => work.workId).sort()).toEqual(['a', 'b']);
        for (const [index, work] of works.entries()) {
          expect(await state('c')).toBe('submitted');
          await ledger.ack({ ...hold('x', work), result: null });
          expect(await state('c')).toBe(index === 0 ? 'submitted' : 'ready');
        }
        expect(await state('d')).toBe('submitted');
        const [c] = await next('x', { max: 10 });
        if (c === undefined) throw new Error('c was not offered');
        await ledger.ack({ ...hold('x', c), result: null });
        expect(await nextKey()).toBe('d');
      });

      it('is ready at once when what it depends on is done already, and refuses what is unknown', async () => {
        await ledger.ack({ ...hold('a', granted(await claim('a'))), result: null });
        await submit('b', { dependsOn: ['a'] });
        expect(await state('b')).toBe('ready');
        expect(await submit('c', { dependsOn: ['a', 'nobody'] })).toEqual({
          accepted: false,
          unknownDependency: 'nobody',
        });
        expect(await ledger.find('c')).toBeNull();
      });

      it('dead-letters what depends on a dropped item, naming it', async () => {
        await submit('a');
        await submit('b', { dependsOn: ['a'] });
        await ledger.drop('a');
        const record = await ledger.find('b');
        expect(record?.state).toBe('dead_letter');
        expect(record?.lastError).toContain('a');
        expect(await ledger.requeue('b')).toMatchObject({ ok: true });
        expect(await state('b')).toBe('ready');
      });
    });

    describe('dead letters', () => {
      it('lists, requeues and drops them', async () => {
        await start({ maxAttempts: 1 });
        for (const key of ['a', 'b', 'c']) {
          await ledger.release({ ...hold('x', granted(await claim(key, 'x'))), reason: `${key} failed` });
        }
        const list = async (after = 0, limit = 10) =>
          await ledger.list({ state: 'dead_letter', after, limit });
        expect((await list()).map((record) => record.lastError)).toEqual([
          'a failed',
          'b failed',
          'c failed',
        ]);
        const [first] = await list(0, 1);
        expect((await list(first?.cursor)).map((record) => record.workId)).toEqual(['b', 'c']);
        expect(await ledger.requeue('a')).toMatchObject({ ok: true });
        expect(await ledger.drop('b')).toMatchObject({ ok: true });
        expect((await list()).map((record) => record.workId)).toEqual(['c']);
        expect(await claim('a', 'y')).toMatchObject({ granted: true, attempt: 1 });
        expect(await claim('b', 'y')).toMatchObject({ granted: false, heldBy: '<deadletter>' });
        expect(await ledger.requeue('a')).toEqual({ ok: false, reason: 'not_dead' });
        expect(await ledger.requeue('nobody')).toEqual({ ok: false, reason: 'unknown' });
        expect(await ledger.stats()).toMatchObject({ pending: 0, claimed: 1, deadLetter: 1 });
      });

      it('takes a dropped item from its holder, and starts anew when it is submitted again', async () => {
        const lease = hold('a', granted(await claim('k')));
        expect(await ledger.drop('k')).toMatchObject({ ok: true });
        expect(await ledger.renew({ ...lease, ttlMs: TTL })).toEqual({ ok: false, reason: 'not_current' });
        expect(await ledger.ack({ ...lease, result: null })).toMatchObject({ ok: false });
        expect(await submit('k')).toMatchObject({ created: true });
        expect(await claim('k', 'b')).toMatchObject({ granted: true, attempt: 1 });
      });

      it('does not drop what is done', async () => {
        await ledger.ack({ ...hold('a', granted(await claim('k'))), result: '1' });
        expect(await ledger.drop('k')).toEqual({ ok: false, reason: 'done' });
        expect(await ledger.find('k')).toMatchObject({ state: 'done', result: '1' });
      });
    });

    describe('telling', () => {
      it('counts what waits, is claimed, is done and is given up', async () => {
        await start({ maxAttempts: 1 });
        for (const key of ['a', 'b', 'c', 'd']) await submit(key);
        await submit('later', { delayMs: 60_000 });
        await fixture.advance(2_000);
        await ledger.ack({ ...hold('x', granted(await claim('a', 'x'))), result: null });
        await ledger.release({ ...hold('x', granted(await claim('b', 'x'))), reason: 'bad' });
        await claim('c', 'x');
        const stats = await ledger.stats();
        expect(stats).toMatchObject({ pending: 2, claimed: 1, deadLetter: 1, done: 1 });
        expect(stats.oldestAgeMs).toBeGreaterThanOrEqual(2_000);
        expect((await ledger.pending(10)).map((record) => record.workId)).toEqual(['d']);
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
        const silence = ledger.onPending(() => {
          told += 1;
          wake();
        });
        await heard(() => submit('k'));
        const lease = hold('a', granted(await claim('k', 'a', 5_000)));
        await heard(() => ledger.release({ ...lease, reason: 'drain' }));
        await claim('k', 'b', 5_000);
        await fixture.advance(6_000);
        await ledger.tend();
        await fixture.advance(1_000);
        await heard(() => ledger.tend());
        silence();
        const last = told;
        await submit('silent');
        await ledger.ping();
        expect(told).toBe(last);
      });

      it('keeps everything for whoever opens the database next', async () => {
        await submit('waits', { kind: 'mail', tenant: 't', priority: 'low' });
        const lease = hold('a', granted(await claim('held')));
        await ledger.close();
        ledger = await fixture.again();
        expect(await ledger.find('waits')).toMatchObject({
          kind: 'mail',
          tenant: 't',
          priority: 'low',
          state: 'ready',
        });
        expect(await ledger.ack({ ...lease, result: '7' })).toMatchObject({ ok: true });
        expect(await ledger.find('held')).toMatchObject({ state: 'done', result: '7' });
        await expect(
          fixture.ledger.claim({ key: 'x', item: 'x', holder: 'a', ttlMs: 1 }),
        ).rejects.toMatchObject({
          code: 'LEDGER_UNAVAILABLE',
        });
      });

      it('takes any text for keys, items, holders and results', async () => {
        const odd = `e\u0301 "quotes" 'and' \u2028 \u{1F600} % _ \\ {} ${'\u{1F600}'.repeat(100)} -- ; $1`;
        await submit(odd, { item: odd.repeat(20), kind: odd.slice(0, 60), tenant: odd.slice(0, 60) });
        const [work] = await ledger.claimNext({
          holder: odd,
          ttlMs: TTL,
          max: 1,
          kinds: null,
          tenants: null,
        });
        if (work === undefined) throw new Error('nothing was offered');
        expect(work).toMatchObject({ workId: odd, item: odd.repeat(20) });
        await ledger.ack({ ...hold(odd, work), result: JSON.stringify({ odd }) });
        expect(JSON.parse((await ledger.find(odd))?.result ?? '')).toEqual({ odd });
      });
    });

    it('keeps its counts true over many mixed histories', async () => {
      await start({ maxAttempts: 2, tenantQuota: 5 });
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
            await submit(key, { tenant: `t${random(3)}`, priority: 'low', delayMs: random(3) * 500 });
            break;
          case 2:
            for (const work of await next(holder, { max: 3 })) held.push(hold(holder, work));
            break;
          case 3: {
            const answer = await claim(key, holder, 3_000);
            if (answer.granted) held.push(hold(holder, answer));
            break;
          }
          case 4:
            if (lease !== undefined) await ledger.ack({ ...lease, result: null });
            break;
          case 5:
            if (lease !== undefined)
              await ledger.release({ ...lease, reason: random(2) === 0 ? 'drain' : 'x' });
            break;
          case 6:
            await fixture.advance(random(2_000));
            await ledger.tend();
            break;
          case 7:
            if (random(2) === 0) await ledger.requeue(key);
            else await ledger.drop(key);
            break;
        }
      }
      const records = await ledger.list({ state: null, after: 0, limit: 1_000 });
      const count = (...states: string[]): number =>
        records.filter(({ state }) => states.includes(state)).length;
      expect(await ledger.stats()).toMatchObject({
        pending: count('submitted', 'ready'),
        claimed: count('leased'),
        done: count('done'),
        deadLetter: count('dead_letter'),
      });
      expect(records.length).toBeGreaterThan(20);
    });
  });
}

/** Mulberry32: whole numbers from 0 below a bound, the same on every run. */
function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

function hold(holder: string, grant: { readonly leaseId: string }): { leaseId: string; holder: string } {
  return { leaseId: grant.leaseId, holder };
}
