import { accessSync, constants, existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The absolute path of a program, as execvp would find it; null when there is none to run. */
export function findProgram(program: string, path: string | undefined, cwd?: string): string | null {
  return candidates(program, path, cwd).find(mayRun) ?? null;
}

/** Why there is no program to run; null when there is one, and a working directory to run it in. */
export function whyNotRun(program: string, path: string | undefined, cwd?: string): string | null {
  if (cwd !== undefined && statSync(cwd, { throwIfNoEntry: false })?.isDirectory() !== true) {
    return `its working directory ${cwd} does not exist`;
  }
  if (findProgram(program, path, cwd) !== null) return null;
  const present = candidates(program, path, cwd).find((file) => existsSync(file));
  if (present !== undefined) return `${present} may not be executed by this user, or is no file`;
  return program.includes('/') ? `there is no program ${program}` : `there is no program ${program} in PATH`;
}

const USUAL_PATH = '/usr/local/bin:/usr/bin:/bin';

function candidates(program: string, path: string | undefined, cwd: string | undefined): string[] {
  return program.includes('/')
    ? [program.startsWith('/') || cwd === undefined ? program : join(cwd, program)]
    : (path ?? USUAL_PATH).split(delimiter).map((folder) => join(folder, program));
}

function mayRun(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    // Folders may be "executed" too.
    return statSync(file).isFile();
  } catch {
    return false;
  }
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
