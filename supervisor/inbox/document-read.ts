import { isUtf8 } from 'node:buffer';
import { constants } from 'node:fs';
import { type FileHandle, open, readlink, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import type { InboxDocument } from './document-index.ts';
import { type FileState, isVisibleInside, type ScanRules, sameState } from './folder-scan.ts';
import { mimeTypeOf } from './mime-types.ts';

/** Bytes of a document, and the state of the file they were read from. */
export interface DocumentSlice {
  readonly bytes: Buffer;
  readonly offset: number;
  readonly state: FileState;
}

/** Attempts to read a file that somebody writes meanwhile before taking what there is. */
const READ_ATTEMPTS = 3;

/**
 * Reads part of a document. The file is judged by what was opened, not by its path: it must be a
 * regular file that really lies in the folder, also when a link was swapped since the last look.
 *
 * @param limit bytes at most; see `onTooLarge`
 * @throws AgentdError DOCUMENT_UNKNOWN
 */
export async function readSlice(
  rules: Pick<ScanRules, 'root' | 'excluded'>,
  document: InboxDocument,
  offset: number,
  limit: number,
): Promise<DocumentSlice> {
  const handle = await openInside(rules, document);
  try {
    for (let attempt = 1; ; attempt++) {
      const before = await handle.stat();
      const length = Math.max(0, Math.min(limit, before.size - offset));
      const buffer = Buffer.allocUnsafe(length);
      let filled = 0;
      while (filled < length) {
        const { bytesRead } = await handle.read(buffer, filled, length - filled, offset + filled);
        if (bytesRead === 0) break;
        filled += bytesRead;
      }
      const after = await handle.stat();
      if (sameState(before, after) || attempt === READ_ATTEMPTS) {
        const { size, mtimeMs, ino } = after;
        return { bytes: buffer.subarray(0, filled), offset, state: { size, mtimeMs, ino } };
      }
    }
  } finally {
    await handle.close();
  }
}

async function openInside(
  rules: Pick<ScanRules, 'root' | 'excluded'>,
  document: InboxDocument,
): Promise<FileHandle> {
  const full = join(rules.root, document.path);
  let handle: FileHandle;
  try {
    // Opening a device can have effects. Non-blocking besides: a pipe may still take the file's place.
    if (!(await stat(full)).isFile()) throw new Error('it is no regular file');
    handle = await open(full, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw unknownDocument(document.uri, errorMessage(error));
  }
  const real = await openedPath(handle, full);
  if ((await handle.stat()).isFile() && real !== null && isVisibleInside(rules, real)) return handle;
  await handle.close();
  throw unknownDocument(document.uri, 'it is no regular file inside the folder any more');
}

/** Where an open file really is: exact on Linux; elsewhere the path's answer right after opening. */
async function openedPath(handle: FileHandle, path: string): Promise<string | null> {
  try {
    if (process.platform !== 'linux') return await realpath(path);
    // A file deleted since reads well and is suffixed here; its folder still tells where it was.
    return (await readlink(`/proc/self/fd/${handle.fd}`)).replace(/ \(deleted\)$/, '');
  } catch {
    return null;
  }
}

export function unknownDocument(uri: string, reason = 'the inbox holds no such document'): AgentdError {
  return new AgentdError('DOCUMENT_UNKNOWN', `cannot read ${uri}: ${reason}`);
}

/** Identifies a state of a document; changes whenever the file was replaced or written. */
export function etagOf(state: FileState): string {
  return `${Math.round(state.mtimeMs * 1000).toString(36)}-${state.size.toString(36)}-${state.ino.toString(36)}`;
}

/** Whether bytes are text a model can read: UTF-8 without NUL. */
export function isText(bytes: Buffer): boolean {
  return isUtf8(bytes) && !bytes.includes(0);
}

/**
 * Cuts a slice of UTF-8 text to whole characters: continuation bytes before the first character
 * and an incomplete character at the end are left to the neighbouring slices.
 */
export function wholeCharacters(slice: DocumentSlice): DocumentSlice {
  const { bytes } = slice;
  let start = 0;
  while (slice.offset > 0 && start < Math.min(3, bytes.length) && isContinuation(bytes[start])) start++;
  let end = bytes.length;
  if (slice.offset + bytes.length < slice.state.size) {
    let lead = end - 1;
    while (lead > start && end - lead < 4 && isContinuation(bytes[lead])) lead--;
    const first = bytes[lead];
    if (first !== undefined && first >= 0xc0 && lead + characterLength(first) > end) end = lead;
  }
  return { ...slice, offset: slice.offset + start, bytes: bytes.subarray(start, Math.max(start, end)) };
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

function characterLength(lead: number): number {
  if (lead >= 0xf0) return 4;
  return lead >= 0xe0 ? 3 : 2;
}

/** The media type of a document, from its name or else from what is in it. */
export function mimeTypeFor(document: InboxDocument, bytes?: Buffer): string | null {
  const named = mimeTypeOf(document.path);
  if (named !== null || bytes === undefined) return named;
  return isText(bytes) ? 'text/plain' : 'application/octet-stream';
}
