import { createHash } from 'node:crypto';

/** How content shows in a log unless `--log-content`: enough to compare and to size, nothing to read. */
export interface ContentDigest {
  /** First 16 hexadecimal digits of the SHA-256 of the text. */
  readonly sha256: string;
  /** Length of the text in UTF-8, bytes. */
  readonly bytes: number;
}

/**
 * Content (prompts, arguments, results) as a log field: itself only when `logContent`, otherwise its
 * hash and length (contract, section 5).
 */
export function contentField(content: unknown, logContent: boolean): unknown {
  return logContent ? content : digest(content);
}

function digest(content: unknown): ContentDigest {
  const text = typeof content === 'string' ? content : (stringify(content) ?? '');
  return {
    sha256: createHash('sha256').update(text, 'utf8').digest('hex').slice(0, 16),
    bytes: Buffer.byteLength(text, 'utf8'),
  };
}

function stringify(content: unknown): string | undefined {
  try {
    return JSON.stringify(content);
  } catch {
    return String(content);
  }
}
