import { printMachine } from './report.ts';

/**
 * Prints the figures of the product, one a line, with the machine's load.
 *
 *     npm run bench              # all
 *     npm run bench -- gates     # those named
 */
const BENCHES: Readonly<Record<string, () => Promise<{ run(): Promise<void> }>>> = {
  gates: () => import('./gates.ts'),
  'one-shot': () => import('./one-shot.ts'),
  ledger: () => import('./ledger.ts'),
  reactions: () => import('./reactions.ts'),
  idle: () => import('./idle.ts'),
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in BENCHES));
if (unknown.length > 0) {
  process.stderr.write(
    `bench: no bench named ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}\n`,
  );
  process.exitCode = 2;
} else {
  for (const [name, load] of Object.entries(BENCHES)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    process.stdout.write(`\n${name}: `);
    printMachine();
    const bench = await load();
    await bench.run();
  }
}
