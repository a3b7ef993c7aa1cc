import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Log } from '../telemetry/log.ts';
import { DocumentIndex } from './document-index.ts';
import { documentUri, printableName } from './document-uri.ts';
import { type FileState, inspectPath, type ScanRules, sameState, scanFolder } from './folder-scan.ts';
import { FolderWatch } from './folder-watch.ts';
import { resolveFolder, unusable } from './inbox-root.ts';
import { SETTLE_TIMES, type SettleTimes, Settling } from './settling.ts';

export interface InboxFolderOptions {
  readonly folder: string;
  /** Real path of a folder inside that is not served, or null. */
  readonly excluded: string | null;
  readonly maxFiles: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly settle?: SettleTimes;
  /** Time between full looks at the folder, which find what no event told of, ms. */
  readonly rescanMs?: number;
  readonly onChange: (change: FolderChange) => void;
}

export interface FolderChange {
  /** URIs of documents that are new or different. */
  readonly updated: readonly string[];
  /** Documents appeared or disappeared. */
  readonly listChanged: boolean;
}

type Availability = { readonly kind: 'available' } | { readonly kind: 'missing'; readonly reason: string };

const RESCAN_MS = 5000;
/** While the folder is gone. */
const MISSING_RESCAN_MS = 1000;
/** A rescan may take at most one part in this many of the time. */
const RESCAN_SHARE = 20;
const TICK_MS = 25;
/** Names that are not UTF-8 are each warned about once, up to this many. */
const MAX_WARNED_NAMES = 1000;

/**
 * A folder and what is in it, kept up to date: file-system events say where to look, a periodic
 * rescan finds what they missed, and a change counts once the file has settled.
 */
export class InboxFolder {
  readonly documents = new DocumentIndex();
  private readonly settling: Settling;
  private readonly watch: FolderWatch;
  private readonly rules: ScanRules;
  private availability: Availability = { kind: 'available' };
  private tickTimer: NodeJS.Timeout | null = null;
  private rescanTimer: NodeJS.Timeout | null = null;
  /** One look at a time: each compares what it finds with the index it then changes. */
  private work: Promise<void> = Promise.resolve();
  private closed = false;
  private overflowTold = false;
  private readonly warnedNames = new Set<string>();

  /**
   * Opens a folder and finds its documents.
   *
   * @throws AgentdError INBOX_FOLDER_UNUSABLE, INBOX_TOO_LARGE
   */
  static async open(options: InboxFolderOptions): Promise<InboxFolder> {
    const folder = new InboxFolder(options, await resolveFolder(options.folder));
    try {
      await folder.load();
    } catch (error) {
      await folder.close();
      throw error instanceof AgentdError ? error : unusable(options.folder, error);
    }
    return folder;
  }

  private constructor(
    private readonly options: InboxFolderOptions,
    /** Real path. */
    private readonly root: string,
  ) {
    this.settling = new Settling(options.settle ?? SETTLE_TIMES, (path) => this.documents.has(path));
    this.watch = new FolderWatch(root, {
      touched: (path) => this.touch(path),
      limited: (reason) =>
        options.log.warn('config.warn', {
          msg: `not every folder of the inbox can be watched (${reason}); changes there take up to a rescan to be noticed`,
        }),
    });
    this.rules = {
      root,
      excluded: options.excluded,
      maxFiles: options.maxFiles,
      onFolder: (path) => this.watch.add(path),
      onUndecodable: (path, name) => this.warnUndecodable(path, name),
    };
  }

  /** What a file must lie in to be served. */
  get place(): Pick<ScanRules, 'root' | 'excluded'> {
    return this.rules;
  }

  /** @throws AgentdError INBOX_UNAVAILABLE while the folder is gone */
  requireAvailable(): void {
    if (this.availability.kind === 'missing') {
      throw new AgentdError(
        'INBOX_UNAVAILABLE',
        `the folder ${this.options.folder} cannot be read: ${this.availability.reason}`,
      );
    }
  }

  /** Looks at the whole folder now; resolves when the index has been compared with it. */
  rescan(): Promise<void> {
    return this.enqueue(() => this.compareAll());
  }

  /** Stops watching. Resolves when no look is in progress. */
  async close(): Promise<void> {
    this.closed = true;
    if (this.tickTimer !== null) clearTimeout(this.tickTimer);
    if (this.rescanTimer !== null) clearTimeout(this.rescanTimer);
    this.watch.close();
    await this.work;
    // A scan in progress may have added watchers behind its back.
    this.watch.close();
  }

  private async load(): Promise<void> {
    const began = this.options.clock.now();
    const found = await scanFolder(this.rules, '');
    if (found.overflowed) throw this.tooLarge();
    this.documents.load(found.files);
    this.scheduleRescan(this.options.clock.now() - began);
  }

  private touch(path: string, seen?: FileState | null): void {
    if (this.closed) return;
    this.settling.touch(path, this.options.clock.now(), seen);
    this.scheduleTick();
  }

  private scheduleTick(): void {
    const missing = this.availability.kind === 'missing';
    if (this.tickTimer !== null || this.closed || missing || this.settling.size === 0) return;
    this.tickTimer = setTimeout(() => {
      void this.enqueue(() => this.lookAtDue()).then(() => {
        this.tickTimer = null;
        this.scheduleTick();
      });
    }, TICK_MS);
    this.tickTimer.unref();
  }

  private scheduleRescan(lastTookMs: number): void {
    if (this.closed) return;
    const base = this.options.rescanMs ?? RESCAN_MS;
    const delay =
      this.availability.kind === 'missing'
        ? Math.min(base, MISSING_RESCAN_MS)
        : Math.max(base, lastTookMs * RESCAN_SHARE);
    this.rescanTimer = setTimeout(() => {
      const began = this.options.clock.now();
      void this.rescan().then(() => this.scheduleRescan(this.options.clock.now() - began));
    }, delay);
    this.rescanTimer.unref();
  }

  private enqueue(look: () => Promise<void>): Promise<void> {
    this.work = this.work.then(async () => {
      if (this.closed) return;
      try {
        await look();
      } catch (error) {
        this.setMissing(errorMessage(error));
      }
    });
    return this.work;
  }

  private async compareAll(): Promise<void> {
    const found = await scanFolder(this.rules, '');
    this.setAvailable();
    if (found.overflowed) this.tellOverflow();
    else this.watch.keepOnly(new Set(found.folders));
    for (const [path, state] of found.files) {
      if (!sameState(this.documents.stateOf(path), state)) this.touch(path, state);
    }
    for (const path of this.documents.all()) {
      // A scan that stopped at the cap says nothing about what it did not reach.
      if (!found.files.has(path)) this.touch(path, found.overflowed ? undefined : null);
    }
  }

  private async lookAtDue(): Promise<void> {
    const due = this.settling.due(this.options.clock.now());
    if (due.length === 0) return;
    // Everything is gone when the folder is: that is no mass deletion. Throws, and is missing then.
    await access(this.root, constants.R_OK);
    const updated: string[] = [];
    let listChanged = false;
    for (const path of due) {
      const found = await inspectPath(this.rules, path);
      if (found === 'folder') {
        listChanged = this.documents.delete(path) || listChanged;
        await this.enterFolder(path);
        continue;
      }
      if (found === null && this.watch.has(path)) this.leaveFolder(path);
      if (!this.settling.settle(path, found, this.options.clock.now())) continue;
      if (found === null) listChanged = this.documents.delete(path) || listChanged;
      else if (!this.documents.has(path) && this.documents.size >= this.options.maxFiles) this.tellOverflow();
      else {
        const change = this.documents.set(path, found);
        if (change === 'created') listChanged = true;
        if (change !== 'same') updated.push(documentUri(path));
      }
    }
    if (updated.length > 0 || listChanged) this.options.onChange({ updated, listChanged });
  }

  /** A folder appeared, or may have been replaced: look at all of it. */
  private async enterFolder(folder: string): Promise<void> {
    this.settling.drop(folder);
    const found = await scanFolder(this.rules, folder);
    for (const [path, state] of found.files) {
      if (!sameState(this.documents.stateOf(path), state)) this.touch(path, state);
    }
    for (const path of this.documents.below(folder)) if (!found.files.has(path)) this.touch(path);
  }

  private leaveFolder(folder: string): void {
    this.watch.removeTree(folder);
    for (const path of this.documents.below(folder)) this.touch(path);
  }

  private setMissing(reason: string): void {
    if (this.availability.kind === 'missing') return;
    this.availability = { kind: 'missing', reason };
    this.watch.close();
    this.options.log.error('config.warn', {
      msg: `the folder ${this.options.folder} cannot be read; the inbox waits for it to come back`,
      err: { type: 'INBOX_UNAVAILABLE', message: reason },
    });
  }

  private setAvailable(): void {
    if (this.availability.kind === 'available') return;
    this.availability = { kind: 'available' };
    this.options.log.info('config.warn', { msg: `the folder ${this.options.folder} is back` });
    this.options.onChange({ updated: [], listChanged: true });
    this.scheduleTick();
  }

  private tooLarge(): AgentdError {
    const { folder, maxFiles } = this.options;
    return new AgentdError('INBOX_TOO_LARGE', `${folder} holds more than ${maxFiles} documents`);
  }

  private tellOverflow(): void {
    if (this.overflowTold) return;
    this.overflowTold = true;
    this.options.log.error('config.warn', {
      msg: 'documents beyond the cap are not served until others go',
      err: { type: 'INBOX_TOO_LARGE', message: this.tooLarge().message },
    });
  }

  private warnUndecodable(folder: string, name: Buffer): void {
    const text = printableName(Buffer.concat([Buffer.from(folder === '' ? '' : `${folder}/`), name]));
    if (this.warnedNames.has(text) || this.warnedNames.size >= MAX_WARNED_NAMES) return;
    this.warnedNames.add(text);
    this.options.log.warn('config.warn', { msg: `not served, its name is not UTF-8: ${text}` });
  }
}
