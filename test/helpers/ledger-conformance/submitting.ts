import { describe, expect, it } from 'vitest';
import { granted, hold, type LedgerHarness } from './harness.ts';

export function submittingRules(h: LedgerHarness): void {
  describe('submitting', () => {
    it('knows a key again while it waits, runs and is done', async () => {
      expect(await h.submit('k')).toEqual({ accepted: true, workId: 'k', created: true });
      expect(await h.submit('k')).toMatchObject({ created: false });
      const lease = hold('a', granted(await h.claim('k')));
      expect(await h.submit('k')).toMatchObject({ created: false });
      await h.ledger.ack({ ...lease, result: null });
      expect(await h.submit('k')).toMatchObject({ created: false });
      expect(await h.ledger.stats()).toMatchObject({ pending: 0, done: 1 });
    });

    it('forgets a settled key after the dedupe horizon, and not before', async () => {
      await h.start({ dedupeHorizonMs: 60_000 });
      const first = granted(await h.claim('k'));
      await h.ledger.ack({ ...hold('a', first), result: '1' });
      await h.fixture.advance(59_000);
      await h.ledger.tend();
      expect(await h.submit('k')).toMatchObject({ created: false });
      await h.fixture.advance(1_001);
      expect(await h.ledger.tend()).toMatchObject({ forgotten: 1 });
      expect(await h.ledger.find('k')).toBeNull();
      const second = granted(await h.claim('k'));
      expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
      expect(await h.ledger.ack({ ...hold('a', first), result: '2' })).toMatchObject({ ok: false });
    });

    it('makes an item ready once everything it depends on is done', async () => {
      await h.submit('a');
      await h.submit('b');
      await h.submit('c', { dependsOn: ['a', 'b'] });
      await h.submit('d', { dependsOn: ['c', 'c'] });
      expect(await h.state('c')).toBe('submitted');
      expect(await h.claim('c')).toMatchObject({ granted: false, heldBy: '<waiting>' });
      const works = await h.next('x', { max: 10 });
      expect(works.map((work) => work.workId).sort()).toEqual(['a', 'b']);
      for (const [index, work] of works.entries()) {
        expect(await h.state('c')).toBe('submitted');
        await h.ledger.ack({ ...hold('x', work), result: null });
        expect(await h.state('c')).toBe(index === 0 ? 'submitted' : 'ready');
      }
      expect(await h.state('d')).toBe('submitted');
      const [c] = await h.next('x', { max: 10 });
      if (c === undefined) throw new Error('c was not offered');
      await h.ledger.ack({ ...hold('x', c), result: null });
      expect(await h.nextKey()).toBe('d');
    });

    it('is ready at once when what it depends on is done already, and refuses what is unknown', async () => {
      await h.ledger.ack({ ...hold('a', granted(await h.claim('a'))), result: null });
      await h.submit('b', { dependsOn: ['a'] });
      expect(await h.state('b')).toBe('ready');
      expect(await h.submit('c', { dependsOn: ['a', 'nobody'] })).toEqual({
        accepted: false,
        unknownDependency: 'nobody',
      });
      expect(await h.ledger.find('c')).toBeNull();
    });

    it('dead-letters what depends on a dropped item, naming it', async () => {
      await h.submit('a');
      await h.submit('b', { dependsOn: ['a'] });
      await h.ledger.drop('a');
      const record = await h.ledger.find('b');
      expect(record?.state).toBe('dead_letter');
      expect(record?.lastError).toContain('a');
      expect(await h.ledger.requeue('b')).toMatchObject({ ok: true });
      expect(await h.state('b')).toBe('ready');
    });
  });
}
