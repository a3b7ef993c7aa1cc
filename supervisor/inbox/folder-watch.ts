import { type FSWatcher, statSync, watch } from 'node:fs';
import { join } from 'node:path';
import { errorMessage } from '../../protocol/errors.ts';
import { decodeName, isIgnoredName } from './document-uri.ts';

/** Watched folders at most; each costs one kernel watch. The rest is found by the rescan. */
const MAX_WATCHED = 8192;

/**
 * Watches each folder of a tree by itself. Node's recursive mode on Linux watches every file too,
 * which no kernel limit would allow for a large inbox, and it follows the tree synchronously.
 */
export class FolderWatch {
  private readonly watchers = new Map<string, { readonly ino: number; readonly watcher: FSWatcher }>();
  private limited = false;

  constructor(
    private readonly root: string,
    private readonly handlers: {
      /** A path below the folder may have changed. */
      touched(path: string): void;
      /** Not every folder can be watched; changes there are noticed later. Said once. */
      limited(reason: string): void;
    },
  ) {}

  /** Watches a folder; one that was replaced under the same name is watched anew. */
  add(folder: string): void {
    const full = join(this.root, folder);
    const known = this.watchers.get(folder);
    try {
      const { ino } = statSync(full);
      if (known?.ino === ino) return;
      this.remove(folder);
      if (this.watchers.size >= MAX_WATCHED) {
        this.limit(`it holds more than ${MAX_WATCHED} folders`);
        return;
      }
      const watcher = watch(full, { persistent: false, encoding: 'buffer' }, (_event, name) => {
        const text = name === null ? null : decodeName(name);
        if (text !== null && !isIgnoredName(text)) {
          this.handlers.touched(folder === '' ? text : `${folder}/${text}`);
        }
      });
      watcher.on('error', (error) => {
        this.remove(folder);
        this.limit(errorMessage(error));
      });
      this.watchers.set(folder, { ino, watcher });
    } catch (error) {
      this.remove(folder);
      const code = (error as NodeJS.ErrnoException).code;
      if (code !== 'ENOENT' && code !== 'ENOTDIR') this.limit(errorMessage(error));
    }
  }

  has(folder: string): boolean {
    return this.watchers.has(folder);
  }

  /** Stops watching a folder and everything below it. */
  removeTree(folder: string): void {
    for (const path of [...this.watchers.keys()]) {
      if (path === folder || path.startsWith(`${folder}/`)) this.remove(path);
    }
  }

  /** Stops watching folders that are no longer there. */
  keepOnly(folders: ReadonlySet<string>): void {
    for (const path of [...this.watchers.keys()]) if (!folders.has(path)) this.remove(path);
  }

  close(): void {
    for (const path of [...this.watchers.keys()]) this.remove(path);
  }

  private remove(folder: string): void {
    this.watchers.get(folder)?.watcher.close();
    this.watchers.delete(folder);
  }

  private limit(reason: string): void {
    if (this.limited) return;
    this.limited = true;
    this.handlers.limited(reason);
  }
}
