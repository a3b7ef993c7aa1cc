import { lstat, readdir, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { decodeName, isIgnoredName } from './document-uri.ts';

/** What tells one state of a file from another. */
export interface FileState {
  readonly size: number;
  readonly mtimeMs: number;
  readonly ino: number;
}

export interface ScanRules {
  /** Real path of the folder. */
  readonly root: string;
  /** Real path of a folder inside that is not part of the inbox, or null. */
  readonly excluded: string | null;
  /** Stops the scan once this many documents were found. */
  readonly maxFiles: number;
  /** Called with each folder before it is listed, so that what happens in it later can be noticed. */
  readonly onFolder: (folder: string) => void;
  /** Called for a name that is not UTF-8. `folder` is relative, `name` raw. */
  readonly onUndecodable: (folder: string, name: Buffer) => void;
}

export interface ScanResult {
  /** By relative path. */
  readonly files: ReadonlyMap<string, FileState>;
  /** Relative paths of the folders walked, the start included. */
  readonly folders: readonly string[];
  /** More documents exist than were allowed. */
  readonly overflowed: boolean;
}

/** Stats in flight at once: enough to hide latency, too few to starve other work of threads. */
const CONCURRENCY = 32;

/**
 * Finds the documents at and below a relative path ('' is the whole folder). A folder that goes
 * away meanwhile is empty; only the folder itself is required to exist.
 *
 * @throws NodeJS.ErrnoException when `start` is '' and the folder cannot be listed
 */
export async function scanFolder(rules: ScanRules, start: string): Promise<ScanResult> {
  const files = new Map<string, FileState>();
  const folders: string[] = [];
  const waiting = [start];
  let overflowed = false;
  for (let folder = waiting.pop(); folder !== undefined && !overflowed; folder = waiting.pop()) {
    rules.onFolder(folder);
    const names = await listFolder(rules, folder);
    if (names === null) continue;
    folders.push(folder);
    for (let index = 0; index < names.length && !overflowed; index += CONCURRENCY) {
      const paths = names.slice(index, index + CONCURRENCY);
      const found = await Promise.all(paths.map((path) => inspectPath(rules, path)));
      for (const [offset, what] of found.entries()) {
        const path = paths[offset];
        if (path === undefined || what === null) continue;
        if (what === 'folder') waiting.push(path);
        else if (files.size < rules.maxFiles) files.set(path, what);
        else overflowed = true;
      }
    }
  }
  return { files, folders, overflowed };
}

/**
 * What a path is: a document's state, a folder to walk, or null for everything an inbox has no
 * business with (absent, special files, links that leave the folder, links to folders).
 */
export async function inspectPath(rules: ScanRules, path: string): Promise<FileState | 'folder' | null> {
  const full = join(rules.root, path);
  try {
    const found = await lstat(full);
    if (found.isDirectory()) return full === rules.excluded ? null : 'folder';
    if (found.isFile()) return stateOf(found);
    if (!found.isSymbolicLink()) return null;
    // Links to folders are not followed: they may form cycles and would give a file two URIs.
    if (!isVisibleInside(rules, await realpath(full))) return null;
    const target = await stat(full);
    return target.isFile() ? stateOf(target) : null;
  } catch {
    // Gone or unreadable: no document for now; the next look decides again.
    return null;
  }
}

/** Whether a real path lies in the folder and outside what is hidden there. */
export function isVisibleInside(rules: Pick<ScanRules, 'root' | 'excluded'>, real: string): boolean {
  const prefix = rules.root.endsWith(sep) ? rules.root : rules.root + sep;
  if (!real.startsWith(prefix)) return false;
  if (rules.excluded !== null && (real + sep).startsWith(rules.excluded + sep)) return false;
  return !real.slice(prefix.length).split(sep).some(isIgnoredName);
}

function stateOf(found: { size: number; mtimeMs: number; ino: number }): FileState {
  return { size: found.size, mtimeMs: found.mtimeMs, ino: found.ino };
}

export function sameState(a: FileState | null | undefined, b: FileState | null | undefined): boolean {
  if (!a || !b) return !a && !b;
  return a.size === b.size && a.mtimeMs === b.mtimeMs && a.ino === b.ino;
}

async function listFolder(rules: ScanRules, folder: string): Promise<string[] | null> {
  let names: Buffer[];
  try {
    names = await readdir(join(rules.root, folder), { encoding: 'buffer' });
  } catch (error) {
    if (folder === '') throw error;
    return null;
  }
  const paths: string[] = [];
  for (const bytes of names) {
    const name = decodeName(bytes);
    if (name === null) rules.onUndecodable(folder, bytes);
    else if (!isIgnoredName(name)) paths.push(folder === '' ? name : `${folder}/${name}`);
  }
  return paths;
}
