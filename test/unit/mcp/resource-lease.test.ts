import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClaimTarget } from '../../../supervisor/gates/lease-keeper.ts';
import type { CallResult, Peer, Peers } from '../../../supervisor/mcp/peers.ts';
import { ResourceLeases } from '../../../supervisor/mcp/resource-lease.ts';
import { leaseIn, statedRemaining } from '../../../supervisor/mcp/resource-lease-document.ts';
import { BoundedMap, ForeignLeases } from '../../../supervisor/mcp/resource-lease-observations.ts';
import { ManualClock } from '../../helpers/manual-clock.ts';

const URI = 'job:///1';
const TARGET: ClaimTarget = {
  server: 'res',
  style: 'resource',
  item: URI,
  claimKey: 'KEY',
  traceparent: 'trace',
  ttlMs: 30_000,
  renewFraction: 0.33,
};

const unused = (): never => {
  throw new Error('not used here');
};

/** One resource behind a network that delays every request and every answer, and loses answers. */
class Network {
  lease: ({ holder: string } & Record<string, unknown>) | null = null;
  private version = 0;

  constructor(
    private readonly scheduler: fc.Scheduler,
    private readonly loses: () => boolean,
  ) {}

  peers(): Peers {
    const peer: Peer = {
      name: 'res',
      tags: [],
      state: 'live',
      toolNames: ['lease.cas'],
      readResource: () =>
        this.travel(() => ({ text: JSON.stringify({ lease: this.lease }), mimeType: null, info: null })),
      callTool: (_, args) => this.travel(() => this.swap(args)),
      listResources: unused,
      whenLive: unused,
    };
    return {
      get: () => peer,
      all: [peer],
      start: unused,
      tools: unused,
      watch: unused,
      unwatch: unused,
      disarm: unused,
      close: unused,
    };
  }

  private swap(args: Record<string, unknown>): CallResult {
    const { expect_version: expected, lease } = args;
    const ok = (this.lease?.version ?? null) === expected;
    if (ok) {
      this.lease = lease === null ? null : { ...(lease as { holder: string }), version: ++this.version };
    }
    return { isError: false, text: '', structured: { ok, version: this.lease?.version ?? null } };
  }

  private async travel<T>(effect: () => T): Promise<T> {
    await this.scheduler.schedule(Promise.resolve(), 'request');
    const answer = effect();
    await this.scheduler.schedule(Promise.resolve(), 'answer');
    if (this.loses()) throw new Error('the answer was lost');
    return answer;
  }
}

describe('leases by compare-and-set', () => {
  it('never have two holders, and are acked once, whatever the order of requests and lost answers', async () => {
    let acked = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.infiniteStream(fc.integer({ min: 0, max: 9 })),
        fc.array(fc.array(fc.constantFrom('renew', 'ack', 'release'), { maxLength: 4 }), {
          minLength: 2,
          maxLength: 4,
        }),
        async (scheduler, dice, plans) => {
          const network = new Network(scheduler, () => dice.next().value < 3);
          const holding = new Set<number>();
          let acks = 0;
          const work = plans.map(async (plan, index) => {
            const leases = new ResourceLeases({
              peers: network.peers(),
              clock: new ManualClock(),
              instance: `sup#${index}`,
              shard: null,
            });
            for (let tries = 0; tries < 3; tries++) {
              const claim = await leases.claim(TARGET, 1_000);
              if (claim.kind !== 'granted') continue;
              holding.add(index);
              expect(holding.size).toBe(1);
              for (const step of plan) {
                if (step === 'renew') {
                  // Time stands still and nobody else may take it, so a renewal can only fail to arrive.
                  expect((await leases.renew(TARGET, claim.leaseId, 1_000)).kind).not.toBe('refused');
                  continue;
                }
                // Given up before the call: from here on its effect may be there at any moment.
                holding.delete(index);
                let reply: { kind: string };
                do {
                  reply = await (step === 'ack'
                    ? leases.ack(TARGET, claim.leaseId, 'result', 1_000)
                    : leases.release(TARGET, claim.leaseId, 'drain', 1_000));
                } while (reply.kind === 'failed');
                if (step === 'ack') {
                  expect(reply.kind).toBe('ok');
                  acks++;
                }
                break;
              }
              return;
            }
          });
          const done = Promise.all(work);
          await scheduler.waitFor(done);
          expect(acks).toBeLessThanOrEqual(1);
          expect(network.lease?.holder === '<acked>').toBe(acks === 1);
          acked += acks;
        },
      ),
      { numRuns: 300 },
    );
    expect(acked).toBeGreaterThan(20);
  });
});

describe('what a resource says of its lease', () => {
  it.each([
    ['{}', null],
    ['{"lease":null}', null],
    ['{"lease":{"holder":"a","version":1,"more":2}}', { holder: 'a', version: 1, more: 2 }],
    ['{"lease":{"holder":"a"}}', 'unreadable'],
    ['{"lease":"a"}', 'unreadable'],
    ['null', 'unreadable'],
    ['not json', 'unreadable'],
  ])('is read from %s', (text, lease) => {
    expect(leaseIn(text)).toEqual(lease);
  });

  it.each([
    [{ expires_in_ms: 500, expires_at: 1 }, 500],
    [{ expires_at: '1970-01-01T00:00:10Z' }, 9_000],
    [{ expires_at: 4_000 }, 3_000],
    [{ expires_at: 'soon' }, null],
    [{}, null],
    [{ expires_in_ms: null, expires_at: null }, null],
  ])('states how long it has left: %j', (fields, remaining) => {
    expect(statedRemaining({ holder: 'a', version: 1, ...fields }, 1_000)).toBe(remaining);
  });
});

describe('leases of others', () => {
  it('are over when the server says so, or unchanged for as long as they could last; never without an end', () => {
    const clock = new ManualClock();
    const seen = new ForeignLeases(clock);
    expect(seen.overIn('p', { holder: 'a', version: 1, expires_in_ms: 0 }, 1_000)).toBe(0);
    const endless = { holder: 'a', version: 1 };
    expect(seen.overIn('q', endless, 1_000)).toBeGreaterThan(0);
    clock.advance(1e12);
    expect(seen.overIn('q', endless, 1_000)).toBeGreaterThan(0);
    const long = { holder: 'a', version: 2, expires_in_ms: 5_000 };
    expect(seen.overIn('p', long, 1_000)).toBeGreaterThan(0);
    clock.advance(4_999);
    expect(seen.overIn('p', long, 1_000)).toBeGreaterThan(0);
    // The same version under another holder is another lease.
    expect(seen.overIn('p', { ...long, holder: 'b' }, 1_000)).toBeGreaterThan(0);
    clock.advance(1);
    expect(seen.overIn('p', { ...long, holder: 'b' }, 1_000)).toBeGreaterThan(0);
    clock.advance(4_999);
    expect(seen.overIn('p', { ...long, holder: 'b' }, 1_000)).toBe(0);
  });

  it('are forgotten from the oldest on rather than fill the memory', () => {
    const map = new BoundedMap<number>(3);
    for (const [key, value] of [
      ['a', 1],
      ['b', 2],
      ['a', 3],
      ['c', 4],
      ['d', 5],
    ] as const)
      map.set(key, value);
    expect(['a', 'b', 'c', 'd'].map((key) => map.get(key))).toEqual([3, undefined, 4, 5]);
    const clock = new ManualClock();
    const seen = new ForeignLeases(clock, 1);
    const lease = { holder: 'a', version: 1, expires_in_ms: 10 };
    seen.overIn('p', lease, 10);
    seen.overIn('q', lease, 10);
    clock.advance(10);
    // Forgetting errs on the side of the holder.
    expect(seen.overIn('p', lease, 10)).toBeGreaterThan(0);
  });
});
