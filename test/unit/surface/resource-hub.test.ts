import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type HubSession,
  ResourceHub,
  type ResourceNotice,
  SubscriptionLimit,
} from '../../../supervisor/surface/resource-hub.ts';

function drain(session: HubSession): ResourceNotice[] {
  const taken: ResourceNotice[] = [];
  for (let notice = session.take(); notice !== null; notice = session.take()) taken.push(notice);
  return taken;
}

const uris = (notices: readonly ResourceNotice[]): string[] =>
  notices.flatMap((notice) => (notice.kind === 'updated' ? [notice.uri] : []));

test('only subscribers hear of an update, and once however often it happened', () => {
  const hub = new ResourceHub();
  const [a, b] = [hub.attach(() => undefined), hub.attach(() => undefined)];
  a.subscribe('x:///1');
  b.subscribe('x:///2');
  for (let count = 0; count < 1000; count++) hub.notifyUpdated('x:///1');
  hub.notifyUpdated('x:///3');
  expect(uris(drain(a))).toEqual(['x:///1']);
  expect(drain(b)).toEqual([]);
});

test('a session is woken when the first notice waits, not for each', () => {
  const hub = new ResourceHub();
  let wakes = 0;
  const session = hub.attach(() => {
    wakes += 1;
  });
  session.subscribe('x:///1');
  session.subscribe('x:///2');
  hub.notifyUpdated('x:///1');
  hub.notifyUpdated('x:///2');
  hub.notifyListChanged();
  expect(wakes).toBe(1);
  drain(session);
  hub.notifyUpdated('x:///2');
  expect(wakes).toBe(2);
});

test('an update that comes after its notice was taken is told again', () => {
  const hub = new ResourceHub();
  const session = hub.attach(() => undefined);
  session.subscribe('x:///1');
  hub.notifyUpdated('x:///1');
  expect(uris(drain(session))).toEqual(['x:///1']);
  hub.notifyUpdated('x:///1');
  expect(uris(drain(session))).toEqual(['x:///1']);
});

test('a session may subscribe to a bounded number of resources, each once', () => {
  const hub = new ResourceHub(2);
  const session = hub.attach(() => undefined);
  session.subscribe('x:///1');
  session.subscribe('x:///1');
  session.subscribe('x:///2');
  expect(() => session.subscribe('x:///3')).toThrow(SubscriptionLimit);
  session.unsubscribe('x:///1');
  session.subscribe('x:///3');
  expect(hub.subscriberCount('x:///1')).toBe(0);
  expect(hub.subscriberCount('x:///3')).toBe(1);
});

test('a detached session leaves nothing behind and can no longer subscribe', () => {
  const hub = new ResourceHub();
  const session = hub.attach(() => undefined);
  session.subscribe('x:///1');
  hub.notifyUpdated('x:///1');
  session.detach();
  session.subscribe('x:///2');
  hub.notifyUpdated('x:///1');
  hub.notifyListChanged();
  expect(drain(session)).toEqual([]);
  expect([...hub.subscribedUris()]).toEqual([]);
});

test('a resumed stream is told again exactly what was told after the last event it saw', () => {
  const hub = new ResourceHub();
  const session = hub.attach(() => undefined);
  for (const uri of ['x:///1', 'x:///2', 'x:///3']) session.subscribe(uri);
  hub.notifyUpdated('x:///1');
  const seen = session.take()?.sequence ?? 0;
  hub.notifyUpdated('x:///2');
  hub.notifyListChanged();
  drain(session);
  hub.notifyUpdated('x:///3');
  session.rewind(seen);
  const again = drain(session);
  expect(new Set(uris(again))).toEqual(new Set(['x:///2', 'x:///3']));
  expect(again.some((notice) => notice.kind === 'list_changed')).toBe(true);
});

test('no subscribed update is lost over any interleaving of updates, reads and broken streams', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('update' as const), uri: fc.nat(4) }),
    fc.record({ kind: fc.constant('read' as const), count: fc.nat(5) }),
    fc.record({ kind: fc.constant('break' as const), arrived: fc.nat(5) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const hub = new ResourceHub();
      const session = hub.attach(() => undefined);
      for (let uri = 0; uri <= 4; uri++) session.subscribe(String(uri));
      // What the client has yet to hear of, and what was sent but may not have arrived.
      const owed = new Set<string>();
      let sent: ResourceNotice[] = [];
      let confirmed = 0;
      const arrive = (notices: readonly ResourceNotice[]): void => {
        for (const notice of notices) {
          if (notice.kind === 'updated') owed.delete(notice.uri);
          confirmed = notice.sequence;
        }
      };
      for (const each of steps) {
        if (each.kind === 'update') {
          // What is in flight now was sent before this update and does not tell of it.
          arrive(sent);
          sent = [];
          hub.notifyUpdated(String(each.uri));
          owed.add(String(each.uri));
        } else if (each.kind === 'read') {
          for (let count = 0; count < each.count; count++) {
            const notice = session.take();
            if (notice !== null) sent.push(notice);
          }
        } else {
          arrive(sent.slice(0, each.arrived));
          sent = [];
          session.rewind(confirmed);
        }
      }
      arrive(sent);
      arrive(drain(session));
      expect([...owed]).toEqual([]);
    }),
    { numRuns: 500 },
  );
});
