import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { TestFleet } from '../helpers/test-fleet.ts';

let running: TestFleet | null = null;
afterEach(async () => {
  await running?.close();
  running = null;
});

describe('a warm session on a claim route', () => {
  it('is held by one replica for as long as it lives, and goes to another when that one is killed', async () => {
    const test = await TestFleet.start({
      documents: 3,
      supervisors: [[], []],
      playbook: 'chatty',
      config: 'session',
    });
    running = test;
    /** Wakes of the session in each replica. */
    const turns = [0, 0];
    const granted = [0, 0];
    test.fleet.onLine((index, line) => {
      if (line.event === 'trigger.fired') turns[index] = (turns[index] ?? 0) + 1;
      if (line.event === 'claim.granted') granted[index] = (granted[index] ?? 0) + 1;
    });
    await test.fleet.startSupervisors();
    await eventually('a first turn', () => Math.max(...turns) > 0);
    const holder = (turns[0] ?? 0) > 0 ? 0 : 1;
    const other = 1 - holder;
    const drop = async (name: string): Promise<void> => {
      const path = join(test.folder, 'inbox', name);
      await writeFile(`${path}.tmp`, name);
      await rename(`${path}.tmp`, path);
    };
    for (let round = 0; round < 3; round++) {
      const before = turns[holder] ?? 0;
      await drop(`round-${round}.txt`);
      await eventually('another turn of the holder', () => (turns[holder] ?? 0) > before);
    }
    expect(turns[other]).toBe(0);
    expect(granted[holder]).toBe(1); // one lease for the life of the session
    test.fleet.supervisors[holder]?.kill('SIGKILL');
    await drop('after.txt');
    await eventually('the other replica to go on', () => (turns[other] ?? 0) > 0);
    const survivor = test.fleet.supervisors[other];
    survivor?.kill('SIGTERM');
    expect(await survivor?.exited).toEqual({ code: 0, signal: null });
  }, 180_000);
});
