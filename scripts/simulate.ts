import { simulate } from '../test/helpers/simulation/world.ts';

/**
 * Simulates supervisors and a ledger in virtual time, seed by seed, until one breaks an invariant.
 *
 *     npm run simulate -- [COUNT] [FIRST_SEED]
 */
const count = Number(process.argv[2] ?? 1_000_000);
const first = Number(process.argv[3] ?? 1);
const started = performance.now();
let events = 0;
for (let seed = first; seed < first + count; seed++) {
  const verdict = simulate(seed);
  events += verdict.events;
  if (verdict.violations.length > 0) {
    process.stdout.write(`seed ${seed}:\n${verdict.violations.map((one) => `  ${one}\n`).join('')}`);
    process.exitCode = 1;
    break;
  }
  if (seed % 10_000 === 0) process.stdout.write(`${seed} seeds, ${events} events\n`);
}
const seconds = Math.round((performance.now() - started) / 1000);
if (process.exitCode === undefined)
  process.stdout.write(`no violation in ${count} seeds, ${events} events, ${seconds} s\n`);
