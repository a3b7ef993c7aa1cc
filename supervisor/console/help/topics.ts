import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The pages of docs/ that come with the program: each is a topic of `agentd help`. */
export interface Topic {
  readonly name: string;
  /** Its first heading. */
  readonly title: string;
  readonly path: string;
}

/** Every topic, by name; none where the documentation was not installed. */
export function topics(): Topic[] {
  const folder = docsFolder();
  if (folder === null) return [];
  return readdirSync(folder)
    .filter((file) => file.endsWith('.md'))
    .sort()
    .map((file) => {
      const path = join(folder, file);
      const title = /^#\s+(.+)$/m.exec(readFileSync(path, 'utf8'))?.[1] ?? file;
      return { name: file.slice(0, -'.md'.length), title, path };
    });
}

/** Beside the bundle, or beside the sources: the nearest docs/ above this file. */
function docsFolder(): string | null {
  let folder = dirname(fileURLToPath(import.meta.url));
  for (let up = 0; up < 4; up += 1) {
    const docs = join(folder, 'docs');
    if (existsSync(join(docs, 'exit-codes.md'))) return docs;
    folder = dirname(folder);
  }
  return null;
}
