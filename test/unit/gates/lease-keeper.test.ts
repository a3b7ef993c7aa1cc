import { describe, expect, it } from 'vitest';
import {
  type ClaimReply,
  type ClaimTarget,
  LeaseKeeper,
  type LeaseMessage,
} from '../../../supervisor/gates/lease-keeper.ts';
import { Timers } from '../../../supervisor/reactor/timers.ts';
import { eventually } from '../../helpers/eventually.ts';
import { ManualClock } from '../../helpers/manual-clock.ts';
import { recordingLog } from '../../helpers/null-log.ts';
import { recordingMetrics } from '../../helpers/peer-harness.ts';

const TARGET: ClaimTarget = {
  server: 'coord',
  style: 'tool',
  item: 'test:///1',
  claimKey: 'KEY',
  traceparent: '',
  ttlMs: 1_000,
  renewFraction: 0.33,
};

/** A keeper whose coordination server answers every claim the same. */
function bench(reply: ClaimReply) {
  const clock = new ManualClock();
  const timers = new Timers(clock);
  const { log, lines } = recordingLog();
  const { metrics, values } = recordingMetrics();
  const messages: LeaseMessage[] = [];
  let asked = 0;
  const unexpected = () => Promise.reject(new Error('not expected'));
  const keeper: LeaseKeeper = new LeaseKeeper({
    clock,
    timers,
    calls: {
      claim: () => {
        asked += 1;
        return Promise.resolve(reply);
      },
      renew: unexpected,
      ack: unexpected,
      release: unexpected,
    },
    log,
    metrics,
    post: (message) => {
      messages.push(message);
      if (message.type === 'lease.event') keeper.handle(message.id, message.event);
    },
    random: () => 0,
  });
  /** Lets every retry come due until the claim is over. */
  const over = (): Promise<unknown> =>
    eventually('the end of the claim', () => {
      clock.advance(10_000);
      timers.runDue();
      return messages.some(({ type }) => type === 'lease.ended');
    });
  return { keeper, lines, values, over, asked: () => asked };
}

const FAILED: ClaimReply = { kind: 'failed', error: 'work.claim: the server is away' };

describe('the keeper of leases', () => {
  it('tells of a claim that could not be asked as what it is: offered, and not answered', async () => {
    const b = bench(FAILED);
    b.keeper.offer('id', TARGET);
    await b.over();
    expect(b.asked()).toBe(3);
    expect(b.lines.map(({ level, event }) => [level, event])).toEqual([
      ['debug', 'claim.offered'],
      ['warn', 'claim.offered'],
    ]);
    expect(b.lines[1]?.fields).toEqual({
      server: 'coord',
      item: 'test:///1',
      claim_key: 'KEY',
      err: { type: 'ClaimUnasked', message: 'work.claim: the server is away' },
      msg: 'test:///1 could not be put to coord: after 3 tries it waits here and is offered again later',
    });
    expect(b.values.get('agent_claims_lost_total')).toBeUndefined();
  });

  it('says of one that a drain cut short that it is left to others', async () => {
    const b = bench(FAILED);
    b.keeper.offer('id', TARGET);
    b.keeper.drain(1_000);
    await b.over();
    expect(b.lines.at(-1)).toMatchObject({ level: 'warn', event: 'claim.offered' });
    expect(b.lines.at(-1)?.fields.msg).toBe(
      'test:///1 could not be put to coord: a drain has begun, so it is left to others',
    );
  });

  it('counts as lost what somebody else has, and says who', async () => {
    const b = bench({ kind: 'lost', heldBy: 'another' });
    b.keeper.offer('id', TARGET);
    await b.over();
    expect(b.lines.at(-1)).toMatchObject({
      level: 'debug',
      event: 'claim.lost',
      fields: { held_by: 'another' },
    });
    expect(b.values.get('agent_claims_lost_total')).toBe(1);
  });
});
