import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import { supervisedBy } from '../../helpers/leftovers.ts';
import { FailingFleet, SHORT_TTL_MS } from './failing-fleet.ts';

const MEMBER = ['--standby', '--assign-from', 'coord:work://pending'];
let fleet: FailingFleet;

beforeAll(async () => {
  fleet = await FailingFleet.start({
    supervisors: [MEMBER, MEMBER, MEMBER],
    config: 'standby',
    ttlMs: SHORT_TTL_MS,
  });
}, 120_000);

afterAll(() => fleet.close());

async function submit(name: string): Promise<string> {
  const [item = ''] = await fleet.drop(name);
  await fleet.test.submit([item]);
  return item;
}

/** The item was done by somebody else than `dead`, once, and nothing of the dead is left. */
async function movedOn(item: string, dead: number, pid: number): Promise<void> {
  const ack = await fleet.said('claim.acked', item);
  expect(ack.supervisor).not.toBe(dead);
  expect(await fleet.effects([item])).toEqual([1]);
  const { state, attempt } = await fleet.ask('work.result', { work_id: item });
  expect(state).toBe('done');
  expect(attempt).toBeGreaterThan(1);
  await eventually('the children of the dead to be gone', () => supervisedBy(pid).length === 0);
  await fleet.revive();
}

async function killHolder(
  event: string,
  item: string,
): Promise<{ readonly dead: number; readonly pid: number }> {
  const { supervisor: dead } = await fleet.said(event, item);
  const { pid } = fleet.supervisor(dead);
  await fleet.kill(dead);
  return { dead, pid };
}

describe('a standby member that dies', () => {
  it('while it waits for work: the others do what is submitted, and nothing waits for it', async () => {
    await fleet.kill(0);
    const items = await fleet.drop('quick-idle-0', 'quick-idle-1', 'quick-idle-2');
    await fleet.test.submit(items);
    await fleet.acked(items);
    expect(await fleet.effects(items)).toEqual([1, 1, 1]);
    for (const item of items) {
      expect(await fleet.ask('work.result', { work_id: item })).toMatchObject({ state: 'done', attempt: 1 });
    }
    await fleet.revive();
  }, 180_000);

  it('as soon as it has pulled an item: another pulls it when the lease is over', async () => {
    const item = await submit('before-pulled');
    const { dead, pid } = await killHolder('claim.granted', item);
    await movedOn(item, dead, pid);
  }, 180_000);

  it('in the middle of the run, before the side effect: another does it', async () => {
    const item = await submit('before-run');
    const { dead, pid } = await killHolder('trigger.fired', item);
    expect(await fleet.effects([item])).toEqual([0]);
    await movedOn(item, dead, pid);
  }, 180_000);

  it('after the side effect and before the ack: another acks, and the side effect stays one', async () => {
    const item = await submit('after-run');
    const { supervisor: dead } = await fleet.said('claim.granted', item);
    const { pid } = fleet.supervisor(dead);
    await fleet.done([item]);
    await fleet.kill(dead);
    await movedOn(item, dead, pid);
  }, 180_000);

  it('in the middle of its drain: what it had not given back moves on all the same', async () => {
    const item = await submit('before-drain');
    const { supervisor: dead } = await fleet.said('trigger.fired', item);
    const { pid } = fleet.supervisor(dead);
    fleet.supervisor(dead).kill('SIGTERM');
    await fleet.said('drain.start', undefined, ({ supervisor }) => supervisor === dead);
    await fleet.kill(dead);
    const ack = await fleet.said('claim.acked', item);
    expect(ack.supervisor).not.toBe(dead);
    expect(await fleet.effects([item])).toEqual([1]);
    expect(await fleet.ask('work.result', { work_id: item })).toMatchObject({ state: 'done' });
    await eventually('the children of the dead to be gone', () => supervisedBy(pid).length === 0);
  }, 180_000);
});
