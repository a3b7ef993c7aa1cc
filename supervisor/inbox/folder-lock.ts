import { closeSync, fstatSync, openSync, type Stats, statSync } from 'node:fs';
import { errorMessage } from '../../protocol/errors.ts';

/** What an attempt to lock a folder came to. */
export type FolderLock =
  | {
      readonly kind: 'held';
      /** Whether the folder at its path is still the one that is locked. */
      isThere(): boolean;
      release(): void;
    }
  /** Another process, or another part of this one, holds it. */
  | { readonly kind: 'taken' }
  /** The platform or the file system cannot lock it. */
  | { readonly kind: 'unsupported'; readonly reason: string };

const LOCK_EX = 2;
const LOCK_NB = 4;

/**
 * Locks a folder for this process with flock(2). The lock is on the folder itself, so nothing is left
 * in it; it goes with its process however that ends, and holds between containers that share a volume.
 *
 * @throws Error when the folder cannot be opened
 */
export async function lockFolder(path: string): Promise<FolderLock> {
  const descriptor = openSync(path, 'r');
  let problem: string;
  try {
    const { default: koffi } = await import('koffi');
    const flock = koffi.load(null).func('int flock(int fd, int operation)');
    if (flock(descriptor, LOCK_EX | LOCK_NB) === 0) {
      return {
        kind: 'held',
        isThere: () => isSame(fstatSync(descriptor), statSync(path, { throwIfNoEntry: false })),
        release: () => closeSync(descriptor),
      };
    }
    const errno = koffi.errno();
    if (errno === koffi.os.errno.EWOULDBLOCK) {
      closeSync(descriptor);
      return { kind: 'taken' };
    }
    problem = `errno ${errno}`;
  } catch (error) {
    problem = errorMessage(error);
  }
  closeSync(descriptor);
  return { kind: 'unsupported', reason: problem };
}

function isSame(one: Stats, other: Stats | undefined): boolean {
  return other !== undefined && one.dev === other.dev && one.ino === other.ino;
}
