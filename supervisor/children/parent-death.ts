import { accessSync, constants, readFileSync, realpathSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The absolute path of a program, as execvp would find it; null when there is none to run. */
export function findProgram(program: string, path: string | undefined, cwd?: string): string | null {
  const candidates = program.includes('/')
    ? [program.startsWith('/') || cwd === undefined ? program : join(cwd, program)]
    : (path ?? '/usr/local/bin:/usr/bin:/bin').split(delimiter).map((folder) => join(folder, program));
  for (const candidate of candidates) {
    try {
      accessSync(candidate, constants.X_OK);
      return candidate;
    } catch {
      // Try the next folder.
    }
  }
  return null;
}

let prefix: readonly string[] | null = null;

/**
 * Words to put before a command so that the kernel kills it when its parent dies, or none where
 * that is not on offer (no util-linux setpriv: macOS, BusyBox). setpriv replaces itself by the
 * command, so the pid stays; it costs about 2 ms. Without it a child still leaves when its stdin
 * closes, and the marker finds it at the next start if it does not.
 */
export function parentDeathPrefix(): readonly string[] {
  prefix ??= probe();
  return prefix;
}

function probe(): readonly string[] {
  if (process.platform !== 'linux') return [];
  const setpriv = findProgram('setpriv', process.env.PATH);
  if (setpriv === null) return [];
  try {
    // Asking the program itself would cost a process at every start; the option's name is in it.
    if (!readFileSync(realpathSync(setpriv)).includes('pdeathsig')) return [];
  } catch {
    return [];
  }
  return [setpriv, '--pdeathsig', 'KILL', '--'];
}
