import { isUtf8 } from 'node:buffer';

/**
 * The URIs of documents: `inbox:///` and the path below the folder, each segment percent-encoded.
 * One path has exactly one URI, on every replica and after every restart.
 */
export const INBOX_SCHEME = 'inbox:///';

/** Suffixes of files that are still being written or belong to an editor. */
const TEMPORARY = /(~|\.(tmp|temp|part|partial|crdownload|download|filepart|swp|swx|swo|bak~))$/i;

/** The URI of a path relative to the folder, written with `/`. */
export function documentUri(path: string): string {
  return INBOX_SCHEME + path.split('/').map(encodeURIComponent).join('/');
}

/**
 * The path a URI stands for, or null when it is not the canonical URI of a visible document. A
 * path is only ever compared with what the folder was found to hold, never opened from here.
 */
export function documentPath(uri: string): string | null {
  if (!uri.startsWith(INBOX_SCHEME)) return null;
  let path: string;
  try {
    path = uri.slice(INBOX_SCHEME.length).split('/').map(decodeURIComponent).join('/');
  } catch {
    return null;
  }
  const plain = path.split('/').every((segment) => !isIgnoredName(segment) && !segment.includes('\0'));
  return plain && documentUri(path) === uri ? path : null;
}

/** Whether a file or folder of this name is no document: hidden, temporary or no name at all. */
export function isIgnoredName(name: string): boolean {
  return name === '' || name.startsWith('.') || TEMPORARY.test(name) || /^#.*#$/.test(name);
}

/** A file name as text, or null when its bytes are not UTF-8 and no URI can carry them. */
export function decodeName(bytes: Buffer): string | null {
  return isUtf8(bytes) ? bytes.toString('utf8') : null;
}

/** A path for people: control characters and bytes that are not text written as escapes. */
export function printableName(bytes: Buffer | string): string {
  const text = typeof bytes === 'string' || isUtf8(bytes) ? bytes.toString() : bytes.toString('latin1');
  const raw = typeof bytes !== 'string' && !isUtf8(bytes);
  return [...text]
    .map((character) => {
      const code = character.codePointAt(0) ?? 0;
      const printable =
        code >= 0x20 && code !== 0x7f && !(raw && code > 0x7f) && !(code >= 0x80 && code < 0xa0);
      return printable ? character : `\\x${code.toString(16).padStart(2, '0')}`;
    })
    .join('');
}
