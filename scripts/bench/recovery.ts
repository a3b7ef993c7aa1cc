import { TestFleet } from '../../test/helpers/test-fleet.ts';
import { print } from './report.ts';

/** How long an item waits when its holder is killed: at most about one ttl (3 s here) and its quarter. */
export async function run(): Promise<void> {
  const fleet = await TestFleet.start({ documents: 1, supervisors: [[], []], playbook: 'slow' });
  try {
    let victim: number | null = null;
    let killedAt = 0;
    const recovered = new Promise<number>((resolve) => {
      fleet.fleet.onLine((index, line) => {
        if (line.event !== 'claim.granted') return;
        if (victim === null) {
          victim = index;
          fleet.fleet.supervisors[index]?.kill('SIGKILL');
          killedAt = performance.now();
        } else if (index !== victim) resolve(performance.now() - killedAt);
      });
    });
    await Promise.allSettled([fleet.fleet.startSupervisor(0), fleet.fleet.startSupervisor(1)]);
    print({
      what: 'kill -9 of a holder → claimed by another, ttl 3 s',
      value: (await recovered) / 1000,
      unit: 's',
    });
  } finally {
    await fleet.close();
  }
}
