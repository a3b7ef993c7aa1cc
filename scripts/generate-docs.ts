import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sourceFiles } from './checks/source-files.ts';
import { configurationPage } from './docs/configuration-page.ts';
import { errorsPage } from './docs/errors-page.ts';
import { eventsPage } from './docs/events-page.ts';
import { exitCodesPage } from './docs/exit-codes-page.ts';
import { metricsPage } from './docs/metrics-page.ts';
import { statesPage } from './docs/states-page.ts';

/**
 * Writes the pages of docs/ that follow from the code. With `--check` writes nothing and fails when
 * one of them is out of date.
 */

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

/** Every generated page: path from the root, and what it should hold. */
export async function generatedPages(): Promise<ReadonlyMap<string, string>> {
  const machines = (await sourceFiles(ROOT)).filter((file) => /^(supervisor|child|protocol)\//.test(file));
  return new Map([
    ['docs/configuration.md', configurationPage()],
    ['docs/errors.md', errorsPage()],
    ['docs/events.md', eventsPage()],
    ['docs/exit-codes.md', exitCodesPage()],
    ['docs/metrics.md', metricsPage()],
    ['docs/states.md', await statesPage(ROOT, machines)],
  ]);
}

/** The generated pages that are not as they should be. */
export async function outdatedPages(): Promise<string[]> {
  const outdated: string[] = [];
  for (const [path, text] of await generatedPages()) {
    const present = await readFile(join(ROOT, path), 'utf8').catch(() => null);
    if (present !== text) outdated.push(path);
  }
  return outdated;
}

async function main(check: boolean): Promise<void> {
  if (check) {
    const outdated = await outdatedPages();
    for (const path of outdated) console.error(`${path} is out of date; run npm run docs`);
    process.exitCode = outdated.length === 0 ? 0 : 1;
    return;
  }
  for (const [path, text] of await generatedPages()) {
    await mkdir(dirname(join(ROOT, path)), { recursive: true });
    await writeFile(join(ROOT, path), text);
    console.log(path);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.includes('--check'));
