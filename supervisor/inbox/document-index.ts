import { documentPath, documentUri } from './document-uri.ts';
import { type FileState, sameState } from './folder-scan.ts';

/** A file as the inbox serves it. */
export interface InboxDocument {
  readonly uri: string;
  /** Relative to the folder. */
  readonly path: string;
  readonly state: FileState;
}

/** Deleted documents still recognised, so that a result for one of them can be filed. */
const MAX_REMEMBERED = 10_000;

/** The documents of an inbox, in the order of their paths. */
export class DocumentIndex {
  private readonly states = new Map<string, FileState>();
  private paths: string[] = [];
  private readonly deleted = new Set<string>();

  get size(): number {
    return this.states.size;
  }

  /** Replaces everything. */
  load(files: ReadonlyMap<string, FileState>): void {
    this.states.clear();
    for (const [path, state] of files) this.states.set(path, state);
    this.paths = [...files.keys()].sort(byCodeUnit);
  }

  has(path: string): boolean {
    return this.states.has(path);
  }

  stateOf(path: string): FileState | undefined {
    return this.states.get(path);
  }

  /** Looks up a canonical URI. */
  find(uri: string): InboxDocument | undefined {
    const path = documentPath(uri);
    const state = path === null ? undefined : this.states.get(path);
    return path === null || state === undefined ? undefined : { uri, path, state };
  }

  /** Whether the URI names a document, now or until lately. */
  knows(uri: string): boolean {
    const path = documentPath(uri);
    return path !== null && (this.states.has(path) || this.deleted.has(path));
  }

  set(path: string, state: FileState): 'created' | 'changed' | 'same' {
    const before = this.states.get(path);
    if (before !== undefined && sameState(before, state)) return 'same';
    this.states.set(path, state);
    this.deleted.delete(path);
    if (before !== undefined) return 'changed';
    this.paths.splice(this.after(path), 0, path);
    return 'created';
  }

  /** Whether there was something to delete. */
  delete(path: string): boolean {
    if (!this.states.delete(path)) return false;
    this.paths.splice(this.after(path) - 1, 1);
    this.deleted.add(path);
    const [oldest] = this.deleted;
    if (this.deleted.size > MAX_REMEMBERED && oldest !== undefined) this.deleted.delete(oldest);
    return true;
  }

  /** Every path, in order. */
  all(): readonly string[] {
    return this.paths;
  }

  /** Paths below a folder. */
  below(folder: string): string[] {
    const prefix = `${folder}/`;
    const found: string[] = [];
    for (let index = this.after(prefix); index < this.paths.length; index++) {
      const path = this.paths[index];
      if (!path?.startsWith(prefix)) break;
      found.push(path);
    }
    return found;
  }

  /** Up to `limit` documents whose path comes after `cursor`; '' begins at the start. */
  page(cursor: string, limit: number): { readonly documents: InboxDocument[]; readonly next: string | null } {
    const start = cursor === '' ? 0 : this.after(cursor);
    const documents: InboxDocument[] = [];
    for (const path of this.paths.slice(start, start + limit)) {
      const state = this.states.get(path);
      if (state !== undefined) documents.push({ uri: documentUri(path), path, state });
    }
    const last = documents.at(-1);
    return { documents, next: start + limit < this.paths.length && last ? last.path : null };
  }

  /** The index of the first path greater than `path`. */
  private after(path: string): number {
    let low = 0;
    let high = this.paths.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.paths[middle] ?? '') <= path) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function byCodeUnit(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
