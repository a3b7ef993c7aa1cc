import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { TestFleet } from '../helpers/test-fleet.ts';

let running: TestFleet | null = null;
afterEach(async () => {
  await running?.close();
  running = null;
});

const MEMBER = ['--standby', '--assign-from', 'coord:work://pending'];

describe('a standby pool', () => {
  it('works through what is submitted, and takes over the items of a member that dies', async () => {
    const test = await TestFleet.start({
      documents: 40,
      supervisors: [MEMBER, MEMBER],
      playbook: 'slow',
      config: 'standby',
    });
    running = test;
    let victimWorks = 0;
    test.fleet.onLine((index, line) => {
      if (index === 0 && line.event === 'trigger.fired') victimWorks++;
    });
    await test.fleet.startSupervisors();
    const uris = await test.inbox.documents();
    expect((await test.tally()).lost).toHaveLength(40); // nobody works on what was not submitted
    await test.submit(uris);
    await eventually('the victim to be at work', () => victimWorks >= 2);
    test.fleet.supervisors[0]?.kill('SIGKILL');
    await test.finished();
    expect(await test.tally()).toEqual({ items: 40, duplicates: 0, lost: [] });
    const survivor = test.fleet.supervisors[1];
    survivor?.kill('SIGTERM');
    expect(await survivor?.exited).toEqual({ code: 0, signal: null });
  }, 240_000);
});
