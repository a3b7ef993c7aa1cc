import { Agent, get } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import { supervisedBy } from '../../helpers/leftovers.ts';
import { FailingFleet, SHORT_TTL_MS } from './failing-fleet.ts';

let fleet: FailingFleet | null = null;

afterEach(async () => {
  await fleet?.close();
  fleet = null;
});

/** Asks once and leaves the connection open, as a scraper does. */
async function idleClient(url: string): Promise<Agent> {
  const agent = new Agent({ keepAlive: true });
  await new Promise<void>((resolve, reject) => {
    get(new URL('/metrics', url), { agent }, (res) => res.resume().once('end', resolve)).once(
      'error',
      reject,
    );
  });
  return agent;
}

describe('a drain', () => {
  it('that is cut off by SIGKILL leaves its item to be done elsewhere once the lease has run out (H28)', async () => {
    fleet = await FailingFleet.start({ supervisors: [[], []], ttlMs: SHORT_TTL_MS });
    const [item = ''] = await fleet.drop('before-1');
    const { supervisor } = await fleet.said('trigger.fired', item);
    const { pid } = fleet.supervisor(supervisor);
    fleet.supervisor(supervisor).kill('SIGTERM');
    await fleet.said('drain.start', undefined, (told) => told.supervisor === supervisor);
    await fleet.kill(supervisor);
    const ack = await fleet.said('claim.acked', item);
    expect(ack.supervisor).not.toBe(supervisor);
    expect(await fleet.effects([item])).toEqual([1]);
    await eventually('the children of the killed to be gone', () => supervisedBy(pid).length === 0);
  }, 180_000);

  it('gives back what it cannot finish, and another replica takes it at once', async () => {
    const common = ['--drain-timeout', '4s'];
    fleet = await FailingFleet.start({ supervisors: [[], []], common, ttlMs: 600_000 });
    const [item = ''] = await fleet.drop('hang-1');
    const { supervisor } = await fleet.said('trigger.fired', item);
    expect(await fleet.drain(supervisor)).toEqual({ code: 0, signal: null });
    const { line } = await fleet.said('claim.released', item);
    expect(line.reason).toBe('drain');
    expect(await fleet.record(item)).toMatchObject({ state: 'ready', attempt: 0 });
  }, 180_000);

  it('lets a run finish its turn, and neither that nor the next drain costs the item an attempt (H12)', async () => {
    fleet = await FailingFleet.start({ supervisors: [[]] });
    const [item = ''] = await fleet.drop('turns-1');
    for (let drains = 1; drains <= 3; drains++) {
      await eventually('another start', () => fleet?.lines('trigger.fired', item).length === drains);
      expect(await fleet.drain(0)).toEqual({ code: 0, signal: null });
      const releases = fleet.lines('claim.released', item).map(({ line }) => line.reason);
      expect(releases).toEqual(Array(drains).fill('drain'));
      expect(await fleet.record(item)).toMatchObject({ state: 'ready', attempt: 0 });
      await fleet.revive();
    }
  }, 240_000);

  it('whose releases fail ends within its budget, naming each item it could not give back (H14)', async () => {
    fleet = await FailingFleet.start({
      supervisors: [[]],
      common: ['--drain-timeout', '6s'],
    });
    const items = await fleet.drop('hang-1', 'hang-2');
    for (const item of items) await fleet.said('trigger.fired', item);
    const client = await idleClient(String(fleet.test.fleet.metricsUrls[0]));
    try {
      const { coordinator } = fleet.test.fleet;
      coordinator.kill('SIGKILL');
      await coordinator.exited;
      expect(await fleet.drain(0)).toEqual({ code: 0, signal: null });
    } finally {
      client.destroy();
    }
    const { line: end } = await fleet.said('drain.done');
    expect(end.dur_ms).toBeLessThan(6_000);
    expect([...(end.unreleased as string[])].sort()).toEqual(items);
    for (const item of items) {
      expect(fleet.lines('drain.claim_release_failed', item)).toHaveLength(1);
    }
  }, 180_000);
});
