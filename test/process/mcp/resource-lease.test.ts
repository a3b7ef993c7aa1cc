import { afterEach, describe, expect, it } from 'vitest';
import type { ClaimReply, ClaimTarget } from '../../../supervisor/gates/lease-keeper.ts';
import { requireTools, toolsForStyle } from '../../../supervisor/mcp/required-tools.ts';
import { ResourceLeases } from '../../../supervisor/mcp/resource-lease.ts';
import {
  type LeaseForm,
  ResourceLeaseServer,
  type ResourceLeaseServerOptions,
} from '../../fixtures/mcp/resource-lease-server.ts';
import { ManualClock } from '../../helpers/manual-clock.ts';
import { mcpServers } from '../../helpers/mcp-servers.ts';
import { httpServer } from '../../helpers/peer-harness.ts';

const { fixture, harness } = mcpServers();
const TTL = 30_000;
const CALL_MS = 10_000;
/** How long a call waits for an answer that does not come: long enough for it to have arrived. */
const LOST_MS = 1_500;
const servers: ResourceLeaseServer[] = [];

// Connections are closed by the harness first, so no client is left when a server stops.
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});

const target = (item: string, over: Partial<ClaimTarget> = {}): ClaimTarget => ({
  server: 'res',
  style: 'resource',
  item,
  claimKey: 'KEY',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  ttlMs: TTL,
  renewFraction: 0.33,
  ...over,
});

async function start(options: Partial<ResourceLeaseServerOptions> = {}): Promise<ResourceLeaseServer> {
  const server = await ResourceLeaseServer.start({
    resources: { 'job:///1': { body: 'one' }, 'job:///2': { body: 'two' }, 'job:///3': { body: 'three' } },
    ...options,
  });
  servers.push(server);
  return server;
}

/** One process that claims, with a clock of its own. */
async function holder(server: { readonly url: string }, instance: string, clock = new ManualClock()) {
  const { peers } = harness([httpServer('res', server.url)], { instance });
  await peers.start();
  return { leases: new ResourceLeases({ peers, clock, instance, shard: null }), clock, peers };
}

function granted(reply: ClaimReply): string {
  if (reply.kind !== 'granted') throw new Error(`not granted: ${JSON.stringify(reply)}`);
  return reply.leaseId;
}

describe('a lease kept in the resource it is about', () => {
  it('is granted to one of ten that ask at the same moment, for each of three resources', async () => {
    const server = await start();
    const holders = await Promise.all(
      Array.from({ length: 10 }, (_, index) => holder(server, `sup#${index}`)),
    );
    for (const uri of ['job:///1', 'job:///2', 'job:///3']) {
      const replies = await Promise.all(holders.map(({ leases }) => leases.claim(target(uri), CALL_MS)));
      expect(replies.filter(({ kind }) => kind === 'granted')).toHaveLength(1);
      expect(replies.filter(({ kind }) => kind === 'lost')).toHaveLength(9);
    }
  });

  it('is renewed, refused to others, acked for good, and says who holds it', async () => {
    const server = await start();
    const [a, b] = [await holder(server, 'a#1'), await holder(server, 'b#1')];
    const lease = granted(await a.leases.claim(target('job:///1'), CALL_MS));
    expect(await b.leases.claim(target('job:///1'), CALL_MS)).toEqual({
      kind: 'lost',
      heldBy: 'a#1/KEY/1',
      retryAfterMs: expect.any(Number),
    });
    for (let count = 0; count < 3; count++) {
      expect(await a.leases.renew(target('job:///1'), lease, CALL_MS)).toEqual({
        kind: 'ok',
        expiresInMs: TTL,
      });
    }
    // A renewal is one call: the version it leads to is remembered.
    expect(server.requests.filter((one) => one.startsWith('read'))).toHaveLength(2);
    expect(await a.leases.ack(target('job:///1'), lease, 'the result', CALL_MS)).toEqual({ kind: 'ok' });
    expect(server.body('job:///1')).toMatchObject({
      body: 'one',
      lease: { holder: '<acked>', acked_by: 'a#1/KEY/1', result: 'the result' },
    });
    b.clock.advance(1_000_000_000);
    expect(await b.leases.claim(target('job:///1'), CALL_MS)).toEqual({ kind: 'lost', heldBy: '<acked>' });
  });

  it('is free again at once after a release, for anybody', async () => {
    const server = await start();
    const [a, b] = [await holder(server, 'a#1'), await holder(server, 'b#1')];
    const lease = granted(await a.leases.claim(target('job:///2'), CALL_MS));
    expect(await a.leases.release(target('job:///2'), lease, 'drain', CALL_MS)).toEqual({ kind: 'ok' });
    expect(server.holder('job:///2')).toBeNull();
    const second = granted(await b.leases.claim(target('job:///2'), CALL_MS));
    // The first holder's calls are late by a whole grant: they change nothing.
    expect(await a.leases.renew(target('job:///2'), lease, CALL_MS)).toEqual({ kind: 'refused' });
    expect(await a.leases.ack(target('job:///2'), lease, 'late', CALL_MS)).toEqual({ kind: 'refused' });
    expect(await a.leases.release(target('job:///2'), lease, 'late', CALL_MS)).toEqual({ kind: 'refused' });
    expect(await b.leases.ack(target('job:///2'), second, 'done', CALL_MS)).toEqual({ kind: 'ok' });
  });

  it('that ran out by the judgement of the server is taken over, and its holder finds out (H08)', async () => {
    let wall = 1_000_000;
    const server = await start({ wall: () => wall });
    const [a, b] = [await holder(server, 'a#1'), await holder(server, 'b#1')];
    const lease = granted(await a.leases.claim(target('job:///1'), CALL_MS));
    wall += TTL - 1;
    expect((await b.leases.claim(target('job:///1'), CALL_MS)).kind).toBe('lost');
    wall += 1;
    const taken = granted(await b.leases.claim(target('job:///1'), CALL_MS));
    expect(await a.leases.renew(target('job:///1'), lease, CALL_MS)).toEqual({ kind: 'refused' });
    expect(await b.leases.ack(target('job:///1'), taken, 'the one result', CALL_MS)).toEqual({ kind: 'ok' });
    expect(await a.leases.ack(target('job:///1'), lease, 'a second result', CALL_MS)).toEqual({
      kind: 'refused',
    });
    expect(server.body('job:///1')).toMatchObject({ lease: { result: 'the one result' } });
  });

  it.each<[LeaseForm, number]>([
    ['expires_at', 300_000],
    ['expires_at', -300_000],
    ['verbatim', 300_000],
  ])(
    'told as %s is not stolen by a clock that is %i ms off, and a dead holder is found (H11)',
    async (form, skew) => {
      const server = await start({ form, wall: () => 1_800_000_000_000 });
      const a = await holder(server, 'a#1');
      const clock = new ManualClock();
      clock.stepWall(skew);
      const b = await holder(server, 'b#1', clock);
      const lease = granted(await a.leases.claim(target('job:///1'), CALL_MS));
      const ask = () => b.leases.claim(target('job:///1'), CALL_MS);
      // A holder that renews keeps it, however long the other has been watching.
      for (let count = 0; count < 5; count++) {
        expect((await ask()).kind).toBe('lost');
        clock.advance(TTL * 0.9);
        expect((await ask()).kind).toBe('lost');
        expect((await a.leases.renew(target('job:///1'), lease, CALL_MS)).kind).toBe('ok');
      }
      // One that does not is over when its version stayed for as long as the lease could last.
      expect((await ask()).kind).toBe('lost');
      clock.advance(TTL - 1);
      expect((await ask()).kind).toBe('lost');
      clock.advance(1 + (form === 'expires_at' ? Math.max(0, -skew) : 0));
      expect((await ask()).kind).toBe('granted');
      expect(await a.leases.renew(target('job:///1'), lease, CALL_MS)).toEqual({ kind: 'refused' });
    },
  );

  it('is its own again after a claim, a renewal, an ack or a release whose answer was lost', async () => {
    const server = await start();
    const a = await holder(server, 'a#1');
    const loseAnswer = (): void => {
      server.onSwapped = () => new Promise(() => undefined);
    };
    const recover = (): void => {
      server.onSwapped = () => undefined;
    };
    loseAnswer();
    expect((await a.leases.claim(target('job:///1'), LOST_MS)).kind).toBe('failed');
    expect(server.holder('job:///1')).toBe('a#1/KEY/1');
    recover();
    const lease = granted(await a.leases.claim(target('job:///1'), CALL_MS));
    loseAnswer();
    expect((await a.leases.renew(target('job:///1'), lease, LOST_MS)).kind).toBe('failed');
    recover();
    expect((await a.leases.renew(target('job:///1'), lease, CALL_MS)).kind).toBe('ok');
    loseAnswer();
    expect((await a.leases.ack(target('job:///1'), lease, 'once', LOST_MS)).kind).toBe('failed');
    recover();
    expect(await a.leases.ack(target('job:///1'), lease, 'once', CALL_MS)).toEqual({ kind: 'ok' });
    const other = granted(await a.leases.claim(target('job:///2'), CALL_MS));
    loseAnswer();
    expect((await a.leases.release(target('job:///2'), other, 'drain', LOST_MS)).kind).toBe('failed');
    recover();
    expect(await a.leases.release(target('job:///2'), other, 'drain', CALL_MS)).toEqual({ kind: 'ok' });
    // A release that is repeated after the same process was granted the resource anew is not of that grant.
    const again = granted(await a.leases.claim(target('job:///2'), CALL_MS));
    expect(await a.leases.release(target('job:///2'), other, 'drain', CALL_MS)).toEqual({ kind: 'refused' });
    expect((await a.leases.renew(target('job:///2'), again, CALL_MS)).kind).toBe('ok');
  });

  it('cannot be had of a resource that is unreadable or missing, and that is no refusal', async () => {
    const answer = { content: [], structuredContent: { nonsense: true } };
    const server = await fixture({
      resources: { 'job:///text': 'plain text', 'job:///list': '[1]', 'job:///free': '{"lease":null}' },
      tools: { 'lease.cas': () => answer },
    });
    const { leases } = await holder(server, 'a#1');
    const ask = (uri: string) => leases.claim(target(uri), CALL_MS);
    expect(await ask('job:///text')).toMatchObject({
      kind: 'failed',
      error: expect.stringMatching(/not JSON that can carry a lease/),
    });
    expect(await ask('job:///list')).toMatchObject({ kind: 'failed' });
    expect(await ask('job:///missing')).toMatchObject({
      kind: 'failed',
      error: expect.stringMatching(/missing/),
    });
    expect(await ask('job:///free')).toMatchObject({
      kind: 'failed',
      error: 'lease.cas: the answer does not have the shape of the contract',
    });
    server.tools.set('lease.cas', () => ({ isError: true, content: [{ type: 'text', text: 'not today' }] }));
    expect(await ask('job:///free')).toEqual({ kind: 'failed', error: 'lease.cas: not today' });
    expect(await leases.claim(target('job:///free', { server: 'other' }), CALL_MS)).toMatchObject({
      kind: 'failed',
    });
  });

  it('is not asked for at a server without lease.cas: that server is refused by name', async () => {
    const server = await fixture({ tools: { 'work.claim': () => ({ content: [] }) } });
    const { peers } = await holder(server, 'a#1');
    expect(() => requireTools(peers, 'res', toolsForStyle('resource'))).toThrow(
      /res is up but does not list lease\.cas/,
    );
  });
});
