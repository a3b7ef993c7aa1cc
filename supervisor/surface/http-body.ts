import type { IncomingMessage } from 'node:http';

/** What became of a request body. */
export type BodyOutcome =
  | { readonly kind: 'complete'; readonly body: Buffer }
  | { readonly kind: 'too_large' }
  /** The client went away or was too slow; the connection is already being closed. */
  | { readonly kind: 'aborted' };

/** Reads a request body up to `maxBytes`. Never rejects. */
export function readBody(req: IncomingMessage, maxBytes: number): Promise<BodyOutcome> {
  const declared = Number(req.headers['content-length'] ?? 0);
  if (declared > maxBytes) return Promise.resolve({ kind: 'too_large' });
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    req.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) {
        req.pause();
        chunks.length = 0;
        resolve({ kind: 'too_large' });
      } else {
        chunks.push(chunk);
      }
    });
    req.on('end', () => resolve({ kind: 'complete', body: Buffer.concat(chunks) }));
    // After 'end' these change nothing: a promise settles once.
    req.on('error', () => resolve({ kind: 'aborted' }));
    req.on('close', () => resolve({ kind: 'aborted' }));
  });
}
