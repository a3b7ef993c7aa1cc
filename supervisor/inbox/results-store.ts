import { constants } from 'node:fs';
import { access, mkdir, readdir, realpath, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { ulid } from 'ulid';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import type { Log } from '../telemetry/log.ts';
import { type FolderLock, lockFolder } from './folder-lock.ts';
import {
  fileName,
  type NewResult,
  parseResult,
  type StoredResult,
  TEMPORARY_PREFIX,
  writeDurably,
} from './result-file.ts';

/** What is kept in memory of a result; the rest is read from its file when asked for. */
export type ResultHead = Pick<StoredResult, 'id' | 'uri' | 'key'> & { readonly file: string };

const LOAD_CONCURRENCY = 32;

/**
 * Results on disk, one file per idempotency key, written once (temp file, fsync, rename, fsync of
 * the folder) before anybody is told that they are filed (invariant 11). A second call with a key
 * gets the first outcome and writes nothing.
 */
export class ResultsStore {
  private readonly byKey = new Map<string, ResultHead>();
  private readonly byUri = new Map<string, number>();
  private readonly ordered: ResultHead[] = [];
  /** Results being written, by key, so that two calls at once write one file. */
  private readonly writing = new Map<string, Promise<ResultHead>>();

  /**
   * Opens the results folder, creating it if needed, locks it and takes up what is in it. Two stores on
   * one folder would not know of each other's keys, and file a result twice.
   *
   * @throws AgentdError INBOX_RESULTS_UNUSABLE, INBOX_RESULTS_LOCKED
   */
  static async open(folder: string, maxResults: number, log: Log): Promise<ResultsStore> {
    let store: ResultsStore | undefined;
    try {
      await mkdir(folder, { recursive: true });
      const real = await realpath(folder);
      await access(real, constants.R_OK | constants.W_OK | constants.X_OK);
      store = new ResultsStore(real, maxResults, log);
      const problem = await store.takeLock();
      if (problem !== null) {
        log.warn('config.warn', {
          msg: `${folder} cannot be locked (${problem}): see to it that no other inbox uses it`,
        });
      }
      await store.load();
      return store;
    } catch (error) {
      store?.close();
      if (error instanceof AgentdError) throw error;
      const reason = errorMessage(error);
      throw new AgentdError('INBOX_RESULTS_UNUSABLE', `cannot keep results in ${folder}: ${reason}`, {
        cause: error,
      });
    }
  }

  private lock: FolderLock | null = null;
  private relocking: Promise<void> | null = null;

  private constructor(
    /** Real path. */
    readonly folder: string,
    private readonly maxResults: number,
    private readonly log: Log,
  ) {}

  /** Lets another inbox have the folder. Nothing may be filed afterwards. */
  close(): void {
    if (this.lock?.kind === 'held') this.lock.release();
    this.lock = null;
  }

  get size(): number {
    return this.ordered.length;
  }

  /** Documents with at least one result. */
  get documentCount(): number {
    return this.byUri.size;
  }

  /** How many distinct results were filed for a document. */
  countFor(uri: string): number {
    return this.byUri.get(uri) ?? 0;
  }

  /**
   * Files a result, or finds the one its key already filed.
   *
   * @throws AgentdError IDEMPOTENCY_CONFLICT, RESULTS_FULL, RESULT_NOT_STORED
   */
  async file(input: NewResult): Promise<{ readonly head: ResultHead; readonly replayed: boolean }> {
    // No await before the key is marked as being written, or two calls at once would both write.
    const pending = this.writing.get(input.key);
    const earlier = pending === undefined ? this.byKey.get(input.key) : await pending;
    if (earlier !== undefined) {
      if (earlier.uri !== input.uri) {
        const message = `the idempotency key already filed a result for ${earlier.uri}, not for ${input.uri}`;
        throw new AgentdError('IDEMPOTENCY_CONFLICT', message);
      }
      return { head: earlier, replayed: true };
    }
    if (this.ordered.length + this.writing.size >= this.maxResults) {
      throw new AgentdError('RESULTS_FULL', `cannot file the result: ${this.maxResults} are kept already`);
    }
    const write = this.write(input);
    this.writing.set(input.key, write);
    try {
      const head = await write;
      return { head, replayed: false };
    } finally {
      this.writing.delete(input.key);
    }
  }

  /** Up to `limit` results in the order they were filed, from `start` on. */
  page(start: number, limit: number, uri?: string): { heads: readonly ResultHead[]; next: number | null } {
    const heads: ResultHead[] = [];
    let index = start;
    for (; index < this.ordered.length && heads.length < limit; index++) {
      const head = this.ordered[index];
      if (head !== undefined && (uri === undefined || head.uri === uri)) heads.push(head);
    }
    return { heads, next: index < this.ordered.length ? index : null };
  }

  /** Reads a result back; null when its file has been taken away or damaged. */
  async read(head: ResultHead): Promise<StoredResult | null> {
    return parseResult(join(this.folder, head.file));
  }

  private async write(input: NewResult): Promise<ResultHead> {
    const id = ulid();
    const record: StoredResult = {
      version: 1,
      id,
      uri: input.uri,
      key: input.key,
      ...(input.runId === undefined ? {} : { run_id: input.runId }),
      ...(input.instance === undefined ? {} : { instance: input.instance }),
      completed_at: new Date().toISOString(),
      result: input.result,
    };
    const head: ResultHead = { id, uri: input.uri, key: input.key, file: fileName(input) };
    try {
      await this.keepLocked();
      // It may be in a folder that was put in the place of the one before.
      const known = this.byKey.get(input.key);
      if (known !== undefined) return known;
      await writeDurably(this.folder, head.file, `${JSON.stringify(record, null, 2)}\n`);
    } catch (error) {
      throw new AgentdError(
        'RESULT_NOT_STORED',
        `cannot store the result for ${input.uri}: ${errorMessage(error)}`,
        { cause: error },
      );
    }
    this.add(head);
    return head;
  }

  private keepLocked(): Promise<void> {
    if (this.lock?.kind === 'held' && this.lock.isThere()) return Promise.resolve();
    this.relocking ??= this.lockAgain().finally(() => {
      this.relocking = null;
    });
    return this.relocking;
  }

  /**
   * Somebody took the results folder away, or put another in its place: that is locked, and what is in
   * it is taken up, before anything is filed there. A missing parent stays missing, and says so.
   */
  private async lockAgain(): Promise<void> {
    await mkdir(this.folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    // Where nothing can be locked, there is nothing to tell one folder from another by.
    if (this.lock?.kind === 'unsupported') return;
    await this.takeLock();
    await this.load();
  }

  /** Locks the folder that is there now. Null, or why it cannot be locked. @throws AgentdError INBOX_RESULTS_LOCKED */
  private async takeLock(): Promise<string | null> {
    const lock = await lockFolder(this.folder);
    if (lock.kind === 'taken') {
      throw new AgentdError('INBOX_RESULTS_LOCKED', `another inbox keeps its results in ${this.folder}`);
    }
    this.close();
    this.lock = lock;
    return lock.kind === 'unsupported' ? lock.reason : null;
  }

  private add(head: ResultHead): void {
    this.byKey.set(head.key, head);
    this.byUri.set(head.uri, this.countFor(head.uri) + 1);
    this.ordered.push(head);
  }

  private async load(): Promise<void> {
    const names = await readdir(this.folder);
    const heads: ResultHead[] = [];
    const files = names.filter((name) => name.endsWith('.json') && !name.startsWith('.'));
    for (let index = 0; index < files.length; index += LOAD_CONCURRENCY) {
      const batch = files.slice(index, index + LOAD_CONCURRENCY);
      const records = await Promise.all(batch.map((file) => parseResult(join(this.folder, file))));
      for (const [offset, record] of records.entries()) {
        const file = batch[offset] ?? '';
        if (record === null) this.log.warn('config.warn', { msg: `skipped, it is no result: ${file}` });
        else heads.push({ id: record.id, uri: record.uri, key: record.key, file });
      }
    }
    heads.sort((a, b) => (a.id < b.id ? -1 : 1));
    for (const head of heads) if (!this.byKey.has(head.key)) this.add(head);
    // Left by a crash between write and rename: nobody was told of them.
    for (const name of names) {
      if (name.startsWith(TEMPORARY_PREFIX)) await unlink(join(this.folder, name)).catch(() => undefined);
    }
  }
}
