import { createHash } from 'node:crypto';
import { type FSWatcher, watch } from 'node:fs';
import { readFile, realpath } from 'node:fs/promises';
import { dirname } from 'node:path';
import { errorMessage } from '../../protocol/errors.ts';
import type { Log } from '../telemetry/log.ts';

/** Quiet after the last sign of a change before the files are looked at, ms. */
const QUIET_MS = 250;
/** Where the system tells nothing (network file systems), files are looked at this often, ms. */
const LOOK_EVERY_MS = 30_000;

/**
 * Notices when a file has another content. It watches the folders and not the files: editors replace
 * a file by a new one, and Kubernetes swaps the link to a whole folder; a watch on the file would be
 * left with what was. What happens beside the files in their folders causes no call.
 */
export class ConfigWatch {
  private files: readonly string[] = [];
  private seen = '';
  private readonly watchers = new Map<string, FSWatcher>();
  private quiet: NodeJS.Timeout | undefined;
  private readonly regularly: NodeJS.Timeout;
  private closed = false;
  private complained = false;

  /** @param changed called after each change of content, once however many files it was */
  constructor(
    private readonly changed: () => void,
    private readonly log: Log,
    private readonly quietMs: number = QUIET_MS,
  ) {
    this.regularly = setInterval(() => void this.look(), LOOK_EVERY_MS);
    this.regularly.unref();
  }

  /** These are the files from now on, as they are now. */
  async watch(files: readonly string[]): Promise<void> {
    const same = this.seen !== '' && files.join('\0') === this.files.join('\0');
    this.files = files;
    await this.arm();
    // What changed between their being read and this moment must not count as seen.
    if (same) this.stir();
    else this.seen = await fingerprint(files);
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.quiet);
    clearInterval(this.regularly);
    for (const watcher of this.watchers.values()) watcher.close();
    this.watchers.clear();
  }

  private stir(): void {
    if (this.closed) return;
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => void this.look(), this.quietMs);
  }

  private async look(): Promise<void> {
    // A link may point elsewhere by now.
    await this.arm();
    const found = await fingerprint(this.files);
    if (this.closed || found === this.seen) return;
    this.seen = found;
    this.changed();
  }

  /** Watches the folder each file is named in and the folder it really is in. */
  private async arm(): Promise<void> {
    const wanted = new Set<string>();
    for (const file of this.files) {
      wanted.add(dirname(file));
      const real = await realpath(file).catch(() => null);
      if (real !== null) wanted.add(dirname(real));
    }
    if (this.closed) return;
    for (const [folder, watcher] of this.watchers) {
      if (wanted.has(folder)) continue;
      watcher.close();
      this.watchers.delete(folder);
    }
    for (const folder of wanted) if (!this.watchers.has(folder)) this.open(folder);
  }

  private open(folder: string): void {
    const lost = (error: unknown): void => {
      this.watchers.delete(folder);
      if (this.complained) return;
      this.complained = true;
      const every = `it is looked at every ${LOOK_EVERY_MS / 1_000} s`;
      this.log.warn('config.warn', { msg: `${folder} cannot be watched: ${errorMessage(error)}; ${every}` });
    };
    try {
      const watcher = watch(folder, { persistent: false }, () => this.stir());
      watcher.on('error', (error) => {
        watcher.close();
        lost(error);
      });
      this.watchers.set(folder, watcher);
    } catch (error) {
      lost(error);
    }
  }
}

/** Of the contents; a file that cannot be read has one, too. */
async function fingerprint(files: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  for (const file of files) {
    const content = await readFile(file).catch(() => null);
    hash.update(content === null ? 'none' : createHash('sha256').update(content).digest());
  }
  return hash.digest('hex');
}
