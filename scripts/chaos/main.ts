import { Random } from '../../test/helpers/simulation/scheduler.ts';
import { chaos, TOLERATED_DESCRIPTORS } from './chaos.ts';

/**
 * Five minutes of chaos, or as many seconds as are given:
 *
 *     npm run chaos -- [SECONDS] [SEED]
 */
const LONGEST_STALL_MS = 500;

const seconds = Number(process.argv[2] ?? 300);
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000);
const random = new Random(seed);
process.stdout.write(`chaos for ${seconds} s, seed ${seed}\n`);
const report = await chaos({
  seconds,
  random: () => random.next(),
  say: (line) => process.stdout.write(`${line}\n`),
});
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
const good =
  report.unaccounted.length === 0 &&
  report.duplicates === 0 &&
  report.leftover.length === 0 &&
  report.zombies === 0 &&
  report.descriptorGrowth.every((growth) => growth <= TOLERATED_DESCRIPTORS) &&
  report.exits.every((exit) => exit === 0) &&
  report.worstStallMs <= LONGEST_STALL_MS;
process.stdout.write(good ? 'survived\n' : 'NOT survived\n');
process.exitCode = good ? 0 : 1;
