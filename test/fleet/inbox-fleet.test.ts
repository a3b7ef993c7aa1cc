import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { supervisedBy } from '../helpers/leftovers.ts';
import { TestFleet } from '../helpers/test-fleet.ts';

let running: TestFleet | null = null;

afterEach(async () => {
  await running?.close();
  running = null;
});

async function start(options: Parameters<typeof TestFleet.start>[0]): Promise<TestFleet> {
  running = await TestFleet.start(options);
  return running;
}

const shards = (count: number): string[][] =>
  Array.from({ length: count }, (_, index) => ['--shard', `${index}/${count}`]);

describe('a fleet on a real inbox', () => {
  it('works 200 documents through three shards, each exactly once, and drains with exit 0', async () => {
    const test = await start({ documents: 200, supervisors: shards(3), playbook: 'quick' });
    const done: number[] = [0, 0, 0];
    test.fleet.onLine((shard, line) => {
      if (line.event === 'claim.acked') done[shard] = (done[shard] ?? 0) + 1;
    });
    await test.fleet.startSupervisors();
    await test.finished();
    await eventually('200 acks', () => done.reduce((sum, one) => sum + one, 0) === 200);
    const exits = await Promise.all(
      test.fleet.supervisors.map((supervisor) => {
        supervisor.kill('SIGTERM');
        return supervisor.exited;
      }),
    );
    expect(exits).toEqual(Array(3).fill({ code: 0, signal: null }));
    expect(await test.tally()).toEqual({ items: 200, duplicates: 0, lost: [] });
    for (const count of done) expect(count).toBeGreaterThan(0);
  }, 240_000);

  it('finishes all 200 when one of three claim-only replicas is killed with -9, side effects once per key', async () => {
    const test = await start({ documents: 200, supervisors: [[], [], []], playbook: 'slow' });
    let acked = 0;
    let victimWorks = false;
    test.fleet.onLine((index, line) => {
      if (line.event === 'claim.acked') acked++;
      if (index === 1 && line.event === 'trigger.fired') victimWorks = true;
    });
    await test.fleet.startSupervisors();
    await eventually('the victim to be in the middle of its work', () => victimWorks && acked > 20, 120_000);
    const victim = test.fleet.supervisors[1];
    victim?.kill('SIGKILL');
    expect(await victim?.exited).toEqual({ code: null, signal: 'SIGKILL' });
    // No child outlives its supervisor (invariant 6).
    await eventually(
      'the children of the victim to be gone',
      () => supervisedBy(victim?.pid ?? 0).length === 0,
    );
    await test.finished(200_000);
    expect(await test.tally()).toEqual({ items: 200, duplicates: 0, lost: [] });
  }, 400_000);
});
