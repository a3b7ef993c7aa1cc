import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

/**
 * Replaces a file as a whole: temp file beside it, fsync, rename, fsync of the folder. Readers see the
 * old or the new text, also after a power cut, and a failure leaves nothing behind.
 *
 * @throws the error of the file system
 */
export function replaceFile(path: string, text: string): void {
  const folder = dirname(resolve(path));
  const temporary = join(folder, `.${basename(path)}.${process.pid}.tmp`);
  try {
    const fd = openSync(temporary, 'w', 0o644);
    try {
      writeFileSync(fd, text);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  syncFolder(folder);
}

/** Not every file system can; the report is in place all the same. */
function syncFolder(folder: string): void {
  try {
    const fd = openSync(folder, 'r');
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  } catch {
    // Nothing to do about it.
  }
}
