import {
  closeSync,
  constants,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

/**
 * Replaces a file as a whole: temp file beside it, fsync, rename, fsync of the folder. Readers see the
 * old or the new text, also after a power cut, and a failure leaves nothing behind. A device or pipe is
 * written to.
 *
 * @throws the error of the file system
 */
export function replaceFile(path: string, text: string): void {
  if (isSpecial(path)) {
    writeSpecial(path, text);
    return;
  }
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

/** Whether a device, a pipe or a folder is there: a rename over it would take it from everybody else. */
export function isSpecial(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === false;
}

/**
 * Writes to a device or pipe without waiting for a reader.
 *
 * @throws the error of the file system: ENOSPC, ENXIO or EAGAIN without a reader, EISDIR
 */
export function writeSpecial(path: string, text: string): void {
  const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    writeSync(fd, text);
  } finally {
    closeSync(fd);
  }
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
