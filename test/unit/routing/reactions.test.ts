import { describe, expect, it } from 'vitest';
import type { ClaimTarget } from '../../../supervisor/gates/lease-keeper.ts';
import type { ResourceInfo } from '../../../supervisor/mcp/peers.ts';
import { bench, CLAIM, only } from '../../helpers/reaction-bench.ts';
import { runOutcome } from '../../helpers/run-outcome.ts';

describe('reactions without a claim', () => {
  it('run at once, up to the cap of the route, and the next when one is over', () => {
    const b = bench([{ maxInflight: 2 }]);
    for (const uri of ['test:///1', 'test:///2', 'test:///3']) b.hear(uri);
    expect(b.launched.map((spec) => spec.event?.uri)).toEqual(['test:///1', 'test:///2']);
    b.reactions.onRunSettled(runOutcome({ runId: 'run-1' }));
    b.reactions.pump();
    expect(b.launched.map((spec) => spec.event?.uri)).toEqual(['test:///1', 'test:///2', 'test:///3']);
  });

  it('serve lanes in turn, so that a full one does not starve another', () => {
    const b = bench([
      { match: 'a:///**', maxInflight: 1 },
      { match: 'b:///**', maxInflight: 1 },
    ]);
    for (const uri of ['a:///1', 'a:///2', 'b:///1']) b.hear(uri);
    expect(b.launched.map((spec) => spec.event?.uri)).toEqual(['a:///1', 'b:///1']);
  });

  it('leave the updates of a continue route to its session', () => {
    const b = bench([{ disposition: { kind: 'continue', session: 's' } }]);
    b.hear('test:///1');
    expect(b.launched).toEqual([]);
    expect(b.lane.queue.waiting).toBe(1);
  });

  it('stay queued while nothing may start', () => {
    const b = bench([{}]);
    b.gate.paused = true;
    b.hear('test:///1');
    expect(b.launched).toEqual([]);
    b.gate.paused = false;
    b.reactions.pump();
    expect(b.launched).toHaveLength(1);
  });

  it('put an update back that no child has ever seen', () => {
    const b = bench([{}]);
    b.hear('test:///1');
    b.reactions.onRunSettled(runOutcome({ runId: 'run-1', status: 'crashed', cause: 'not_ready' }));
    expect(b.lane.queue.waiting).toBe(1);
    b.clock.advance(5_000);
    b.reactions.pump();
    expect(b.launched.map((spec) => spec.event?.uri)).toEqual(['test:///1', 'test:///1']);
  });

  it('keep a failed run from being tried again: its event has been delivered', () => {
    const b = bench([{}]);
    b.hear('test:///1');
    b.reactions.onRunSettled(runOutcome({ runId: 'run-1', status: 'crashed' }));
    b.clock.advance(100_000);
    b.reactions.pump();
    expect(b.launched).toHaveLength(1);
  });
});

describe('reactions with a claim', () => {
  it('are not asked for while no child can be started: the update waits for that, or for another replica', () => {
    const b = bench([{ claim: CLAIM }]);
    b.gate.cannotSpawn = true;
    b.hear('test:///1');
    expect(b.offered).toEqual([]);
    expect(b.lane.queue.waiting).toBe(1);
    expect(b.reactions.assign(b.lane, 's', 'test:///2')).toBe(false);
    b.gate.cannotSpawn = false;
    b.reactions.pump();
    expect(b.offered).toHaveLength(1);
  });

  it('run only what was granted, under the claim key, and ack its result', () => {
    const b = bench([{ claim: CLAIM }]);
    b.hear('test:///1');
    expect(b.launched).toEqual([]);
    const [id, target] = only(b.offered);
    expect(target).toMatchObject({ server: 'coord', item: 'test:///1', claimKey: id });
    b.reactions.onLeaseStart(id);
    expect(only(b.launched).runId).toBe(id);
    b.reactions.onRunSettled(runOutcome({ runId: id, result: 'answer' }));
    expect(b.settled).toEqual([[id, 'completed', 'answer']]);
    b.reactions.onLeaseEnded(id, { kind: 'acked' });
    expect(b.reactions.owns(id)).toBe(false);
    expect(b.lane.queue.inflight).toBe(0);
  });

  it('give back whatever did not complete, and try it again after a backoff', () => {
    const b = bench([{ claim: CLAIM }]);
    b.hear('test:///1');
    const [id] = only(b.offered);
    b.reactions.onLeaseStart(id);
    b.reactions.onRunSettled(
      runOutcome({ runId: id, status: 'crashed', error: { type: 'E', message: 'boom' } }),
    );
    expect(b.settled).toEqual([[id, 'not_completed', 'crashed: boom']]);
    b.reactions.onLeaseEnded(id, { kind: 'released', reason: 'crashed' });
    b.reactions.pump();
    expect(b.offered).toHaveLength(1);
    b.clock.advance(1_000);
    b.reactions.pump();
    expect(b.offered).toHaveLength(2);
  });

  it('look again after a ttl at what a living holder has, and never at what is done', () => {
    const b = bench([{ claim: CLAIM }]);
    b.hear('test:///1');
    b.hear('test:///2');
    const [first, second] = b.offered.map(([id]) => id);
    b.reactions.onLeaseEnded(first ?? '', { kind: 'lost', heldBy: 'another' });
    b.reactions.onLeaseEnded(second ?? '', { kind: 'lost', heldBy: '<acked>' });
    b.clock.advance(999);
    b.timers.runDue();
    expect(b.posted).toEqual([]);
    b.clock.advance(300);
    b.timers.runDue();
    expect(b.posted).toEqual([{ type: 'revisit', server: 's', uri: 'test:///1' }]);
  });

  it.each([
    ['when its lease would be over', 400, 400, 450],
    ['not at once, whatever the ledger says', 0, 99, 150],
    ['no later than after a ttl, since it may be given back early', 60_000, 999, 1_050],
  ])('look again at what a living holder has: %s', (_name, retryAfterMs, before, after) => {
    const b = bench([{ claim: CLAIM }]);
    b.hear('test:///1');
    b.reactions.onLeaseEnded(b.offered[0]?.[0] ?? '', { kind: 'lost', heldBy: 'another', retryAfterMs });
    b.clock.advance(before - 1);
    b.timers.runDue();
    expect(b.posted).toEqual([]);
    b.clock.advance(after - before + 1);
    b.timers.runDue();
    expect(b.posted).toEqual([{ type: 'revisit', server: 's', uri: 'test:///1' }]);
  });

  it('stop at once when the lease is lost, do not ack, and look again later', () => {
    const b = bench([{ claim: CLAIM }]);
    b.hear('test:///1');
    const [id] = only(b.offered);
    b.reactions.onLeaseStart(id);
    b.reactions.onLeaseStop(id, 'lease_lost', 0);
    b.reactions.onLeaseEnded(id, { kind: 'expired', why: 'refused' });
    expect(b.stopped).toEqual([[id, 'lease_lost', 0]]);
    expect(b.reactions.owns(id)).toBe(true); // until the child is gone
    b.reactions.onRunSettled(runOutcome({ runId: id, status: 'completed' }));
    expect(b.settled).toEqual([]);
    expect(b.reactions.owns(id)).toBe(false);
  });

  it('give a lease back that is granted after a drain began', () => {
    const b = bench([{ claim: CLAIM }]);
    b.hear('test:///1');
    const [id] = only(b.offered);
    b.gate.draining = true;
    b.reactions.onLeaseStart(id);
    expect(b.launched).toEqual([]);
    expect(b.settled).toEqual([[id, 'not_completed', 'drain']]);
  });

  it.each([
    ['was stopped by a drain', 'drain', true, 'drain'],
    ['was told to wind down and stopped by itself', null, true, 'drain'],
    ['was cancelled by somebody', 'cancelled', true, 'cancelled'],
    ['stopped by itself without any drain', null, false, 'cancelled'],
  ] as const)('release what %s', (_name, cause, draining, reason) => {
    const b = bench([{ claim: CLAIM }]);
    b.hear('test:///1');
    const [id] = only(b.offered);
    b.reactions.onLeaseStart(id);
    b.gate.draining = draining;
    b.reactions.onRunSettled(runOutcome({ runId: id, status: 'cancelled', cause }));
    // A drain as the reason consumes no attempt.
    expect(b.settled).toEqual([[id, 'not_completed', reason]]);
  });

  it('spend no attempt on an item when the machine cannot start a child', () => {
    const b = bench([{ claim: CLAIM }]);
    b.hear('test:///1');
    const [id] = only(b.offered);
    b.reactions.onLeaseStart(id);
    const error = { type: 'SPAWN_FAILED', message: 'too many open files (EMFILE)' };
    b.reactions.onRunSettled(runOutcome({ runId: id, status: 'crashed', cause: 'spawn_failed', error }));
    expect(b.settled).toEqual([[id, 'not_completed', 'not_started: too many open files (EMFILE)']]);
  });

  it('put an item back when the ledger could not be asked', () => {
    const b = bench([{ claim: CLAIM }]);
    b.hear('test:///1');
    b.reactions.onLeaseEnded(only(b.offered)[0], { kind: 'unasked', error: 'down' });
    b.clock.advance(1_000);
    b.reactions.pump();
    expect(b.offered).toHaveLength(2);
  });

  it('run once more for updates that arrive during a run', () => {
    const b = bench([{ claim: CLAIM }]);
    b.hear('test:///1');
    const [id] = only(b.offered);
    b.reactions.onLeaseStart(id);
    b.hear('test:///1');
    b.hear('test:///1');
    b.reactions.onRunSettled(runOutcome({ runId: id }));
    b.reactions.onLeaseEnded(id, { kind: 'acked' });
    b.reactions.pump();
    expect(b.offered).toHaveLength(2);
  });

  it('never claim one key twice at a time, which would hand us our own lease', () => {
    const b = bench([{ claim: { ...CLAIM, key: 'the same for {{route}}' } }]);
    b.hear('test:///1');
    b.hear('test:///2');
    expect(b.offered).toHaveLength(1);
    expect(b.lane.queue.waiting).toBe(1);
  });

  it('look at the resource first when the claim key depends on it', async () => {
    const info: ResourceInfo = {
      uri: 'test:///1',
      name: '1',
      mimeType: null,
      size: 3,
      lastModified: '2026-01-01T00:00:00Z',
      meta: {},
    };
    const key = '{{uri}}@{{last_modified}}';
    const keyOf = async (described: ResourceInfo): Promise<string> => {
      const b = bench([{ claim: { ...CLAIM, key } }], { describe: () => Promise.resolve(described) });
      b.hear('test:///1');
      expect(b.reactions.claiming).toBe(1);
      await Promise.resolve();
      const event = only(b.posted);
      if (event.type !== 'described') throw new Error(event.type);
      b.reactions.onDescribed(event);
      return only(b.offered)[1].claimKey;
    };
    const first = await keyOf(info);
    expect(await keyOf(info)).toBe(first);
    expect(await keyOf({ ...info, lastModified: '2026-01-02T00:00:00Z' })).not.toBe(first);
  });
});

describe('reactions to what the ledger hands out', () => {
  const target: ClaimTarget = {
    server: 'coord',
    style: 'tool',
    item: 'test:///1',
    claimKey: 'K',
    traceparent: '',
    ttlMs: 1_000,
    renewFraction: 0.33,
  };
  const item = { uri: 'test:///1', claimKey: 'K', grant: { leaseId: 'L', expiresInMs: 1_000, sentAt: 0 } };

  it('run under the claim key, and leave what does not complete to the ledger', () => {
    const b = bench([{ claim: CLAIM }]);
    b.reactions.adopt(b.lane, 's', item, target);
    expect(b.adopted).toEqual([['K', 'L']]);
    b.reactions.onLeaseStart('K');
    expect(only(b.launched)).toMatchObject({ runId: 'K', event: { uri: 'test:///1' } });
    b.reactions.onRunSettled(runOutcome({ runId: 'K', status: 'crashed' }));
    b.reactions.onLeaseEnded('K', { kind: 'released', reason: 'crashed' });
    b.clock.advance(100_000);
    b.reactions.pump();
    expect(b.offered).toEqual([]);
    expect(b.lane.queue.inflight).toBe(0);
  });

  it('give back an item that is being worked on here, and everything once a drain began', () => {
    const b = bench([{}]);
    b.hear('test:///1');
    b.reactions.adopt(b.lane, 's', item, target);
    expect(b.settled).toEqual([['K', 'given_back', 'not_started: busy']]);
    b.gate.draining = true;
    b.reactions.adopt(b.lane, 's', { ...item, uri: 'test:///2', claimKey: 'K2' }, target);
    expect(b.settled[1]).toEqual(['K2', 'given_back', 'drain']);
  });

  it('keep a lease that is handed out to us again', () => {
    const b = bench([{ claim: CLAIM }]);
    b.reactions.adopt(b.lane, 's', item, target);
    b.reactions.adopt(b.lane, 's', item, target);
    expect(b.adopted).toHaveLength(1);
    expect(b.settled).toEqual([]);
  });

  it('take an assigned item at once while there is room', () => {
    const b = bench([{ claim: CLAIM, maxInflight: 1 }]);
    expect(b.reactions.assign(b.lane, 's', 'test:///1')).toBe(true);
    expect(b.offered).toHaveLength(1);
    expect(b.reactions.assign(b.lane, 's', 'test:///2')).toBe(false);
  });
});
