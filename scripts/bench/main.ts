import { printMachine } from './report.ts';

/**
 * Prints the figures of the product, one a line, with the machine's load.
 *
 *     npm run bench              # all
 *     npm run bench -- gates     # those named
 *     npm run bench -- memory=10000   # with what a bench takes as its argument
 */
const BENCHES: Readonly<Record<string, () => Promise<{ run(argument?: string): Promise<void> }>>> = {
  gates: () => import('./gates.ts'),
  'one-shot': () => import('./one-shot.ts'),
  ledger: () => import('./ledger.ts'),
  'ledger-postgres': () => import('./ledger-postgres.ts'),
  'ledger-growth': () => import('./ledger-growth.ts'),
  recovery: () => import('./recovery.ts'),
  reactions: () => import('./reactions.ts'),
  idle: () => import('./idle.ts'),
  ends: () => import('./ends.ts'),
  memory: () => import('./memory.ts'),
  telemetry: () => import('./telemetry.ts'),
  package: () => import('./package.ts'),
};

const wanted = new Map<string, string | undefined>();
for (const word of process.argv.slice(2)) {
  const [name = '', argument] = word.split('=', 2);
  wanted.set(name, argument);
}
const unknown = [...wanted.keys()].filter((name) => !(name in BENCHES));
if (unknown.length > 0) {
  process.stderr.write(
    `bench: no bench named ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}\n`,
  );
  process.exitCode = 2;
} else {
  for (const [name, load] of Object.entries(BENCHES)) {
    if (wanted.size > 0 && !wanted.has(name)) continue;
    process.stdout.write(`\n${name}: `);
    printMachine();
    const bench = await load();
    await bench.run(wanted.get(name));
  }
}
