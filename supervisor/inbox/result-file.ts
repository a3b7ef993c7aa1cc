import { createHash } from 'node:crypto';
import { type FileHandle, open, readFile, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { ulid } from 'ulid';
import { z } from 'zod';

/** Of files that are being written; a crash leaves them. */
export const TEMPORARY_PREFIX = '.tmp-';

/** A result as it lies in its file. */
const storedResult = z.object({
  version: z.literal(1),
  /** Identifies the result; also orders results by when they were filed. */
  id: z.string(),
  uri: z.string(),
  key: z.string(),
  run_id: z.string().optional(),
  instance: z.string().optional(),
  completed_at: z.iso.datetime(),
  result: z.unknown(),
});
export type StoredResult = z.infer<typeof storedResult>;

export interface NewResult {
  readonly uri: string;
  readonly key: string;
  readonly runId?: string | undefined;
  readonly instance?: string | undefined;
  readonly result: unknown;
}

/** What a file holds; null when it is no result. */
export async function parseResult(path: string): Promise<StoredResult | null> {
  try {
    const parsed = storedResult.safeParse(JSON.parse(await readFile(path, 'utf8')));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}

/** Readable, and unique for a key: the document's name, then a digest of the key. */
export function fileName(input: Pick<NewResult, 'uri' | 'key'>): string {
  const base = decodeURIComponent(input.uri.slice(input.uri.lastIndexOf('/') + 1));
  const slug = base
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[.-]+/, '')
    .slice(0, 80);
  const digest = createHash('sha256').update(input.key).digest('hex').slice(0, 24);
  return `${slug === '' ? 'document' : slug}.${digest}.json`;
}

/** Temp file, fsync, rename, fsync of the folder: whole and on disk, or not there. */
export async function writeDurably(folder: string, name: string, text: string): Promise<void> {
  const temporary = join(folder, `${TEMPORARY_PREFIX}${ulid()}`);
  try {
    await withFile(temporary, 'wx', async (handle) => {
      await handle.writeFile(text);
      await handle.sync();
    });
    await rename(temporary, join(folder, name));
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  await withFile(folder, 'r', (handle) => handle.sync());
}

async function withFile(
  path: string,
  flags: string,
  use: (handle: FileHandle) => Promise<void>,
): Promise<void> {
  const handle = await open(path, flags);
  try {
    await use(handle);
  } finally {
    await handle.close();
  }
}
