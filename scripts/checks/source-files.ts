import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';

const FOLDERS = ['protocol', 'child', 'supervisor', 'scripts', 'test', 'examples'];

/** Every TypeScript file of the project, as paths from its root, sorted. */
export async function sourceFiles(root: string): Promise<string[]> {
  const found = await Promise.all(FOLDERS.map((folder) => under(root, join(root, folder))));
  return found.flat().sort();
}

async function under(root: string, folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((path) => !path.includes('node_modules'));
}
