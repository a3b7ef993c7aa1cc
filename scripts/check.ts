import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { errorDocs } from './checks/error-codes.ts';
import { readProject } from './checks/project.ts';
import { STRUCTURE } from './checks/structure.ts';
import { outdatedPages } from './generate-docs.ts';

/** `npm run check`: everything about the sources that can be judged without running the product. */

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

interface Finding {
  readonly name: string;
  /** Empty: in order. */
  readonly problems: readonly string[];
}

const TOOLS: readonly (readonly [string, string, readonly string[]])[] = [
  ['types', 'tsc', ['--noEmit']],
  ['lint and format', 'biome', ['ci', '--error-on-warnings', '--colors=off', '--max-diagnostics=30', '.']],
  ['unused files, exports and dependencies', 'knip', []],
];

async function main(): Promise<void> {
  let failed = 0;
  for await (const { name, problems } of findings()) {
    console.log(`${problems.length === 0 ? 'ok    ' : 'FAILED'} ${name}`);
    for (const problem of problems) console.log(`       ${problem.replaceAll('\n', '\n       ')}`);
    if (problems.length > 0) failed += 1;
  }
  console.log(failed === 0 ? 'all checks passed' : `${failed} checks failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

async function* findings(): AsyncGenerator<Finding> {
  const tools = TOOLS.map(([name, command, args]) => runTool(name, command, args));
  const project = await readProject(ROOT);
  for (const [name, check] of Object.entries(STRUCTURE)) yield { name, problems: check(project) };
  const outdated = await outdatedPages();
  yield {
    name: 'generated pages are up to date',
    problems: outdated.map((path) => `${path} is out of date; run npm run docs`),
  };
  yield {
    name: 'error codes match their page',
    problems: errorDocs(await readFile(join(ROOT, 'docs/errors.md'), 'utf8')),
  };
  for (const tool of tools) yield await tool;
}

async function runTool(name: string, command: string, args: readonly string[]): Promise<Finding> {
  const { exitCode, all } = await execa(command, args, {
    cwd: ROOT,
    preferLocal: true,
    all: true,
    reject: false,
    env: { NO_COLOR: '1' },
  });
  return { name, problems: exitCode === 0 ? [] : [all.trim() === '' ? `${command} failed` : all.trim()] };
}

await main();
