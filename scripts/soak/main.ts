import { parseArgs } from 'node:util';
import { POSTGRES_MISSING, startPostgres } from '../../test/helpers/postgres.ts';
import { Random } from '../../test/helpers/simulation/scheduler.ts';
import { isGood, soak } from './soak.ts';

/**
 * Eight supervisors and 5,000 items, with random kill -9 and SIGSTOP:
 *
 *     npx tsx scripts/soak/main.ts [--db sqlite|postgres|URL] [--items N] [--supervisors N] [--seed N]
 */
const { values } = parseArgs({
  options: {
    db: { type: 'string', default: 'sqlite' },
    items: { type: 'string', default: '5000' },
    supervisors: { type: 'string', default: '8' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const random = new Random(Number(values.seed));
const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};
say(`${values.supervisors} supervisors, ${values.items} items, ${values.db}, seed ${values.seed}`);
if (values.db === 'postgres' && POSTGRES_MISSING !== null) throw new Error(POSTGRES_MISSING);
const server = values.db === 'postgres' ? await startPostgres(true) : null;
try {
  const database = (await server?.createDatabase()) ?? (values.db === 'sqlite' ? undefined : values.db);
  const report = await soak({
    supervisors: Number(values.supervisors),
    items: Number(values.items),
    ...(database === undefined ? {} : { database }),
    calmMs: 3_000,
    random: () => random.next(),
    say,
    budgetMs: 60 * 60_000,
  });
  say(JSON.stringify(report, null, 2));
  say(isGood(report) ? 'nothing lost, nothing twice' : 'NOT good');
  process.exitCode = isGood(report) ? 0 : 1;
} finally {
  await server?.stop();
}
