import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../telemetry/log.ts';
import { replaceFile } from '../telemetry/replace-file.ts';

/** Larger counts are no counts. */
const MAX_GENERATION = Number.MAX_SAFE_INTEGER - 1;

/**
 * Restarts of this instance, counted in the folder the service manager keeps for it
 * (`STATE_DIRECTORY`, systemd.exec(5)); 0 where there is none.
 */
export function restartsSeen(env: NodeJS.ProcessEnv, instance: string, log: Log): number {
  const [folder = ''] = (env.STATE_DIRECTORY ?? '').split(':');
  return folder === '' ? 0 : nextGeneration(join(folder, `${encodeURIComponent(instance)}.generation`), log);
}

/**
 * Counts the starts of this instance in a small file that outlives the process, and returns how many
 * restarts that makes: 0 at the first start. A file that cannot be read counts as none, one that
 * cannot be written is a warning (invariant 10).
 */
export function nextGeneration(path: string, log: Log): number {
  const before = readGeneration(path);
  try {
    replaceFile(path, `${before + 1}\n`);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    log.warn('config.warn', { msg: `restarts cannot be counted: ${path} cannot be written: ${message}` });
  }
  return before;
}

/** Starts counted so far. */
function readGeneration(path: string): number {
  try {
    const text = readFileSync(path, 'utf8').trim();
    const count = /^\d{1,16}$/.test(text) ? Number(text) : 0;
    return count <= MAX_GENERATION ? count : 0;
  } catch {
    return 0;
  }
}
