import type { Writable } from 'node:stream';

const CHECK_MS = 250;

/**
 * Waits until everything written to `stream` has been handed to the kernel, so that exiting cuts
 * nothing off (hard case H21). Gives up when the stream breaks, or when its reader takes nothing for
 * `stallMs` (invariant 5).
 */
export async function flushOutput(stream: Writable, stallMs: number): Promise<void> {
  if (stream.destroyed || stream.errored !== null || stream.writableLength === 0) return;
  await new Promise<void>((resolve) => {
    let waiting = stream.writableLength;
    let since = performance.now();
    const check = setInterval(() => {
      if (stream.writableLength !== waiting) {
        waiting = stream.writableLength;
        since = performance.now();
      } else if (performance.now() - since >= stallMs) {
        finish();
      }
    }, CHECK_MS);
    const finish = (): void => {
      clearInterval(check);
      stream.off('close', finish);
      stream.off('error', finish);
      resolve();
    };
    stream.once('close', finish);
    stream.once('error', finish);
    stream.write('', finish);
  });
}
