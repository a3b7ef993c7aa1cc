import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RouteQueue, type RouteQueueOptions, TRANSITIONS } from '../../../supervisor/routing/route-queue.ts';

const queue = (over: Partial<RouteQueueOptions> = {}): RouteQueue =>
  new RouteQueue({ debounceMs: 100, cap: () => 16, overflow: 'coalesce', ...over });

describe('route queue', () => {
  it('waits for quiet, but at most four debounce periods', () => {
    const q = queue();
    q.offer('u', 0);
    expect(q.next(99)).toBeNull();
    for (let now = 50; now < 1000; now += 50) q.offer('u', now);
    expect(q.next(399)).toBeNull();
    expect(q.next(400)).toEqual({ uri: 'u', since: 0 });
  });

  it('runs exactly once more for any number of updates during a delivery', () => {
    const q = queue();
    q.offer('u', 0);
    q.next(100);
    q.begin('u');
    expect(q.offer('u', 110).kind).toBe('queued');
    expect(q.offer('u', 120).kind).toBe('coalesced');
    expect(q.next(1000)).toBeNull();
    expect(q.settle('u', 1000)).toBe(true);
    expect(q.next(1100)).toEqual({ uri: 'u', since: 110 });
    q.begin('u');
    expect(q.settle('u', 1200)).toBe(false);
    expect(q.next(9999)).toBeNull();
  });

  it('offers a delivery that could not be made again, at the time it was given', () => {
    const q = queue();
    q.offer('u', 0);
    q.next(100);
    q.begin('u');
    q.retry('u', 5000);
    q.offer('u', 200); // a further update does not shorten the backoff
    expect(q.next(4999)).toBeNull();
    expect(q.next(5000)).toEqual({ uri: 'u', since: 0 });
  });

  it.each([
    ['drop_newest', { kind: 'dropped', uri: 'c' }, ['a', 'b']],
    ['drop_oldest', { kind: 'dropped', uri: 'a' }, ['b', 'c']],
    ['block', { kind: 'blocked' }, ['a', 'b', 'c']],
    ['coalesce', { kind: 'blocked' }, ['a', 'b', 'c']],
  ] as const)('keeps to its cap with overflow %s', (overflow, offered, delivered) => {
    const q = queue({ cap: () => 2, overflow, debounceMs: 0 });
    q.offer('a', 0);
    q.offer('b', 1);
    expect(q.offer('c', 2)).toEqual(offered);
    const order: string[] = [];
    for (let next = q.next(10); next !== null; next = q.next(10)) {
      q.begin(next.uri);
      order.push(next.uri);
      q.settle(next.uri, 10);
    }
    expect(order).toEqual(delivered);
  });

  it('delivers every offered uri at least once after its last update, and never two at a time', () => {
    const command = fc.oneof(
      fc.record({ do: fc.constant('offer' as const), uri: fc.constantFrom('a', 'b', 'c') }),
      fc.record({ do: fc.constant('start' as const) }),
      fc.record({ do: fc.constant('settle' as const), pick: fc.nat(3) }),
      fc.record({ do: fc.constant('retry' as const), pick: fc.nat(3) }),
      fc.record({ do: fc.constant('wait' as const), ms: fc.nat(300) }),
    );
    fc.assert(
      fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
        const q = queue();
        let now = 0;
        const running = new Set<string>();
        const dirty = new Set<string>(); // updated since the last delivery began
        for (const one of commands) {
          if (one.do === 'wait') now += one.ms;
          else if (one.do === 'offer') {
            q.offer(one.uri, now);
            dirty.add(one.uri);
          } else if (one.do === 'start') {
            const next = q.next(now);
            if (next === null) continue;
            expect(running.has(next.uri)).toBe(false);
            q.begin(next.uri);
            running.add(next.uri);
            dirty.delete(next.uri);
          } else {
            const uri = [...running][one.pick];
            if (uri === undefined) continue;
            running.delete(uri);
            if (one.do === 'settle') q.settle(uri, now);
            else {
              q.retry(uri, now + 10);
              dirty.add(uri);
            }
          }
          expect(q.inflight).toBe(running.size);
        }
        for (const uri of running) q.settle(uri, now);
        const delivered = new Set<string>();
        for (let next = q.next(now + 10_000); next !== null; next = q.next(now + 10_000)) {
          q.begin(next.uri);
          delivered.add(next.uri);
          q.settle(next.uri, now);
        }
        expect([...delivered].sort()).toEqual([...dirty].sort());
        expect(q.waiting).toBe(0);
      }),
    );
  });

  it('prints a table that names each of its states', () => {
    expect(new Set(TRANSITIONS.map((row) => row.state))).toEqual(
      new Set(['idle', 'debouncing', 'waiting', 'delivering']),
    );
  });
});
