import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { deliveryKey, Intake } from '../../../supervisor/routing/intake.ts';
import { nullLog } from '../../helpers/null-log.ts';
import { recordingMetrics } from '../../helpers/peer-harness.ts';
import { routeConfig } from '../../helpers/route-config.ts';

const SHARD = { index: 0, count: 1, timer: 'shard0' } as const;

function intakeOf(...matches: string[]) {
  const { metrics, values } = recordingMetrics();
  const routes = matches.map((match) => routeConfig({ match }));
  const intake = new Intake({ routes, shard: SHARD }, nullLog, metrics, () => 64);
  const reroute = (...next: string[]) =>
    intake.reroute(
      next.map((match) => routeConfig({ match })),
      0,
    );
  const hear = (uri: string): void => {
    intake.hear({ server: 's', uri, cause: 'notification', at: 0 }, 0);
  };
  const queueOf = (match: string) => {
    const lane = intake.lanes.find(({ route }) => route.config.match === match);
    if (lane === undefined) throw new Error(`no route ${match}`);
    return lane.queue;
  };
  const begin = (match: string, uri: string): void => {
    queueOf(match).next(0);
    queueOf(match).begin(deliveryKey('s', uri));
  };
  const dropped = (): number => values.get('agent_dropped_events_total') ?? 0;
  return { intake, reroute, hear, queueOf, begin, dropped };
}

describe('other routes while updates wait and are worked on', () => {
  it('keep the queue of a route that keeps its name', () => {
    const b = intakeOf('a:///*');
    b.hear('a:///1');
    const queue = b.queueOf('a:///*');
    const moved = b.reroute('a:///*', 'b:///*');
    expect(b.queueOf('a:///*')).toBe(queue);
    expect(b.intake.waiting).toBe(1);
    expect([moved('s', 'a:///1'), moved('s', 'b:///1'), moved('s', 'c:///1')]).toEqual([false, true, false]);
  });

  it('take over what waits, and drop and count what no route takes', () => {
    const b = intakeOf('a:///*', 'b:///*');
    for (const uri of ['a:///1', 'b:///1']) b.hear(uri);
    b.reroute('a:///1');
    expect(b.queueOf('a:///1').next(0)?.uri).toBe(deliveryKey('s', 'a:///1'));
    expect(b.intake.waiting).toBe(1);
    expect(b.dropped()).toBe(1);
  });

  it('never start on a resource that another route still works on, and do so afterwards', () => {
    const b = intakeOf('a:///*');
    b.hear('a:///1');
    b.begin('a:///*', 'a:///1');
    const old = b.queueOf('a:///*');
    b.reroute('a:///1');
    b.hear('a:///1');
    expect(b.queueOf('a:///1').next(0)).toBeNull();
    expect(b.intake.inflight).toBe(1);
    old.settle(deliveryKey('s', 'a:///1'), 0);
    b.intake.rehome(0);
    expect(b.intake.inflight).toBe(0);
    expect(b.queueOf('a:///1').next(0)?.uri).toBe(deliveryKey('s', 'a:///1'));
  });

  it('neither lose, double nor mislay an update, whatever the order of things', () => {
    const uris = ['a:///1', 'a:///2', 'b:///1'];
    const matches = ['a:///*', 'a:///1', 'b:///*', '**'];
    const step = fc.oneof(
      fc.record({ do: fc.constant('hear' as const), uri: fc.constantFrom(...uris) }),
      fc.record({ do: fc.constant('begin' as const), at: fc.nat(3) }),
      fc.record({ do: fc.constant('settle' as const), at: fc.nat(5) }),
      fc.record({ do: fc.constant('retry' as const), at: fc.nat(5) }),
      fc.record({ do: fc.constant('reroute' as const), to: fc.uniqueArray(fc.constantFrom(...matches)) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const { intake, reroute, hear, dropped } = intakeOf('**');
        /** In delivery, by key. */
        const open = new Map<string, (typeof intake.lanes)[number]['queue']>();
        /** Heard since its last delivery began. */
        const due = new Set<string>();
        let lost = 0;
        for (const one of steps) {
          const [key, queue] = [...open][one.do === 'settle' || one.do === 'retry' ? one.at : 0] ?? [];
          switch (one.do) {
            case 'hear':
              if (intake.laneOf('s', one.uri) !== null) due.add(deliveryKey('s', one.uri));
              hear(one.uri);
              break;
            case 'begin': {
              const lane = intake.lanes[one.at];
              const next = lane?.queue.next(0) ?? null;
              if (lane === undefined || next === null) break;
              expect(open.has(next.uri)).toBe(false);
              lane.queue.begin(next.uri);
              open.set(next.uri, lane.queue);
              due.delete(next.uri);
              break;
            }
            case 'settle':
            case 'retry':
              if (key === undefined || queue === undefined) break;
              open.delete(key);
              if (one.do === 'settle') queue.settle(key, 0);
              else {
                queue.retry(key, 0);
                due.add(key);
              }
              break;
            case 'reroute':
              reroute(...one.to);
          }
          intake.rehome(0);
          for (const key of due) {
            const [server = '', uri = ''] = key.split('\u0000');
            // In delivery it is kept there; it has an owner again, or is dropped, when that ends.
            if (open.has(key) || intake.laneOf(server, uri) !== null) continue;
            due.delete(key);
            lost += 1;
          }
          expect(intake.inflight).toBe(open.size);
          const waits = [...due].filter((key) => !open.has(key));
          expect(intake.waiting).toBe(waits.length);
          expect(dropped()).toBe(lost);
        }
      }),
    );
  });
});
