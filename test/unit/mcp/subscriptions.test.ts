import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { PeerMessage } from '../../../supervisor/mcp/peers.ts';
import { type SubscriptionSession, Subscriptions } from '../../../supervisor/mcp/subscriptions.ts';
import { systemClock } from '../../../supervisor/reactor/clock.ts';
import { recordingLog } from '../../helpers/null-log.ts';

/** A server that answers each request when the test lets timers run. */
class FakeSession implements SubscriptionSession {
  deaf: string | null = null;
  announcesLists = true;
  uris: string[] = [];
  listings = 0;
  inFlight = 0;
  most = 0;
  readonly log: string[] = [];
  readonly refuses = new Set<string>();
  refusesList = false;
  /** ms a request takes. */
  delay = 1;

  subscribe(uri: string): Promise<void> {
    return this.answer(`subscribe ${uri}`, this.refuses.has(uri));
  }

  unsubscribe(uri: string): Promise<void> {
    return this.answer(`unsubscribe ${uri}`, this.refuses.has(uri));
  }

  async list(): Promise<readonly { uri: string }[]> {
    this.listings += 1;
    await this.answer('list', this.refusesList);
    return this.uris.map((uri) => ({ uri }));
  }

  private async answer(what: string, refuse: boolean): Promise<void> {
    this.inFlight += 1;
    this.most = Math.max(this.most, this.inFlight);
    this.log.push(what);
    await new Promise((resolve) => setTimeout(resolve, this.delay));
    this.inFlight -= 1;
    if (refuse) throw new Error('not now');
  }
}

function setUp(more: Partial<ConstructorParameters<typeof Subscriptions>[0]> = {}) {
  const messages: PeerMessage[] = [];
  const { log, lines } = recordingLog();
  const subscriptions = new Subscriptions({
    server: 's',
    clock: systemClock,
    log,
    random: () => 0.5,
    emit: (message) => messages.push(message),
    ...more,
  });
  const updates = () =>
    messages.flatMap((one) => (one.type === 'resource.updated' ? [`${one.cause} ${one.uri}`] : []));
  const reports = () => messages.flatMap((one) => (one.type === 'subscriptions' ? [one] : []));
  return { subscriptions, session: new FakeSession(), messages, lines, updates, reports };
}

const later = (ms = 100) => vi.advanceTimersByTimeAsync(ms);

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('subscriptions', () => {
  it('keep at most sixteen requests in flight and cost one request per resource, for 5,000 of them', async () => {
    const { subscriptions, session, updates, reports } = setUp();
    session.uris = Array.from({ length: 5_000 }, (_, n) => `a://x/${n}`);
    subscriptions.watch('a://x/*');
    subscriptions.attach(session);
    await later(2_000);
    expect(session.most).toBe(16);
    expect(session.listings).toBe(1);
    expect(session.log.filter((what) => what.startsWith('subscribe'))).toHaveLength(5_000);
    expect(new Set(updates())).toEqual(new Set(session.uris.map((uri) => `reread ${uri}`)));
    expect(updates()).toHaveLength(5_000);
    expect(reports()).toEqual([{ type: 'subscriptions', server: 's', active: 5_000, complete: true }]);
    subscriptions.detach();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('announce after the acknowledgement, never before', async () => {
    const { subscriptions, session, updates } = setUp();
    session.delay = 50;
    subscriptions.watch('a://1');
    subscriptions.attach(session);
    await later(49);
    subscriptions.notified('a://1');
    expect(updates()).toEqual([]);
    await later(2);
    subscriptions.notified('a://1');
    expect(updates()).toEqual([]);
    await later(30);
    expect(updates()).toEqual(['reread a://1']);
    subscriptions.notified('a://1');
    expect(updates()).toEqual(['reread a://1', 'notification a://1']);
    subscriptions.detach();
  });

  it('follow a glob: what is new is announced as listed, what is gone is unsubscribed', async () => {
    const { subscriptions, session, updates, reports } = setUp();
    session.uris = ['a://x/1', 'a://x/2', 'a://y/1'];
    subscriptions.watch('a://x/**');
    subscriptions.attach(session);
    await later();
    session.uris = ['a://x/2', 'a://x/deep/3', 'a://y/2'];
    subscriptions.listChanged();
    await later();
    expect(updates()).toEqual(['reread a://x/1', 'reread a://x/2', 'listed a://x/deep/3']);
    expect(session.log).toContain('unsubscribe a://x/1');
    expect(session.log).not.toContain('subscribe a://y/1');
    expect(reports().at(-1)).toMatchObject({ active: 2, complete: true });
    expect(reports().every(({ complete }) => complete)).toBe(true);
    subscriptions.detach();
  });

  it('list once more for a burst of changes, however long it is', async () => {
    const { subscriptions, session, updates } = setUp();
    subscriptions.watch('a://**');
    subscriptions.attach(session);
    await later();
    session.delay = 20;
    for (let n = 0; n < 200; n++) {
      session.uris.push(`a://${n}`);
      subscriptions.listChanged();
    }
    await later(1_000);
    expect(session.listings).toBe(3);
    expect(updates()).toHaveLength(200);
    subscriptions.detach();
  });

  it('list from time to time where the server announces no changes', async () => {
    const { subscriptions, session, updates } = setUp({ relistMs: 1_000 });
    session.announcesLists = false;
    subscriptions.watch('a://*');
    subscriptions.attach(session);
    await later();
    session.uris = ['a://new'];
    await later(1_100);
    expect(updates()).toEqual(['listed a://new']);
    subscriptions.detach();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('go on without one that fails, say that they are incomplete, and retry it', async () => {
    const { subscriptions, session, updates, reports } = setUp();
    session.refuses.add('a://2');
    for (const uri of ['a://1', 'a://2', 'a://3']) subscriptions.watch(uri);
    subscriptions.attach(session);
    await later();
    expect(updates()).toEqual(['reread a://1', 'reread a://3']);
    expect(reports()).toEqual([{ type: 'subscriptions', server: 's', active: 2, complete: false }]);
    await later(10_000);
    expect(session.log.filter((what) => what === 'subscribe a://2').length).toBeGreaterThan(2);
    session.refuses.clear();
    await later(30_000);
    expect(updates()).toEqual(['reread a://1', 'reread a://3', 'reread a://2']);
    expect(reports().at(-1)).toMatchObject({ active: 3, complete: true });
    subscriptions.detach();
  });

  it('are incomplete while the resources cannot be listed', async () => {
    const { subscriptions, session, updates, reports } = setUp();
    session.refusesList = true;
    session.uris = ['a://1'];
    subscriptions.watch('a://*');
    subscriptions.attach(session);
    await later();
    expect(reports()).toEqual([{ type: 'subscriptions', server: 's', active: 0, complete: false }]);
    session.refusesList = false;
    await later(30_000);
    expect(updates()).toEqual(['reread a://1']);
    expect(reports().at(-1)).toMatchObject({ active: 1, complete: true });
    subscriptions.detach();
  });

  it('of a server that cannot be heard are incomplete, with the reason in the log', async () => {
    const { subscriptions, session, updates, reports, lines } = setUp();
    session.deaf = 'the server does not offer resource subscriptions';
    session.uris = ['a://1'];
    subscriptions.watch('a://*');
    subscriptions.watch('a://2');
    subscriptions.attach(session);
    await later();
    expect(session.log).toEqual([]);
    expect(updates()).toEqual([]);
    expect(reports()).toEqual([{ type: 'subscriptions', server: 's', active: 0, complete: false }]);
    expect(lines.filter(({ level }) => level === 'error').map(({ fields }) => fields.err?.message)).toEqual([
      'agentd cannot hear updates: the server does not offer resource subscriptions',
    ]);
  });

  it('end with the session and begin again with the next', async () => {
    const { subscriptions, session, updates, reports } = setUp();
    subscriptions.watch('a://1');
    subscriptions.attach(session);
    await later();
    subscriptions.detach();
    expect(reports().at(-1)).toMatchObject({ active: 0, complete: false });
    const next = new FakeSession();
    subscriptions.attach(next);
    await later();
    expect(next.log).toEqual(['subscribe a://1']);
    expect(updates()).toEqual(['reread a://1', 'reread a://1']);
    expect(reports().at(-1)).toMatchObject({ active: 1, complete: true });
    subscriptions.detach();
  });

  it('ignore what a session answers after it was replaced', async () => {
    const { subscriptions, session, updates, reports } = setUp();
    session.delay = 500;
    session.uris = ['a://old'];
    subscriptions.watch('a://*');
    subscriptions.watch('a://1');
    subscriptions.attach(session);
    await later(100);
    const next = new FakeSession();
    next.uris = ['a://new'];
    subscriptions.attach(next);
    await later(2_000);
    expect(updates().sort()).toEqual(['reread a://1', 'reread a://new']);
    expect(reports()).toEqual([{ type: 'subscriptions', server: 's', active: 2, complete: true }]);
    subscriptions.detach();
  });

  it('of a pattern that is no longer watched end, but for what another one still covers', async () => {
    const { subscriptions, session, updates } = setUp();
    session.uris = ['a://x/1', 'a://x/2', 'a://y/1'];
    subscriptions.watch('a://x/*');
    subscriptions.watch('a://**');
    subscriptions.watch('a://x/1');
    subscriptions.attach(session);
    await later();
    expect(updates()).toHaveLength(3);
    subscriptions.unwatch('a://**');
    await later();
    expect(session.log).toContain('unsubscribe a://y/1');
    subscriptions.unwatch('a://x/*');
    await later();
    expect(session.log.filter((what) => what.startsWith('unsubscribe'))).toEqual([
      'unsubscribe a://y/1',
      'unsubscribe a://x/2',
    ]);
    subscriptions.unwatch('a://x/1');
    subscriptions.unwatch('a://x/1');
    await later();
    expect(subscriptions.active).toBe(0);
    subscriptions.detach();
  });

  it('settle on what was wanted last when it changes while a request is under way', async () => {
    const { subscriptions, session } = setUp();
    session.delay = 50;
    subscriptions.attach(session);
    subscriptions.watch('a://1');
    await later(10);
    subscriptions.unwatch('a://1');
    await later(10);
    subscriptions.watch('a://1');
    await later(10);
    subscriptions.unwatch('a://1');
    await later(1_000);
    expect(subscriptions.active).toBe(0);
    expect(session.log).toEqual(['subscribe a://1', 'unsubscribe a://1']);
    subscriptions.detach();
  });

  it('re-announce everything when the stream had a gap', async () => {
    const { subscriptions, session, updates } = setUp();
    session.uris = ['a://1', 'a://2'];
    subscriptions.watch('a://*');
    subscriptions.attach(session);
    await later();
    session.uris.push('a://3');
    subscriptions.reread();
    await later();
    expect(updates().slice(2)).toEqual(['reread a://1', 'reread a://2', 'listed a://3']);
    subscriptions.detach();
  });
});
