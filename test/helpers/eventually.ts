import { setTimeout as pause } from 'node:timers/promises';

/**
 * Polls state outside this process until `probe` returns something other than undefined and false.
 * For what cannot be awaited directly only: another process's files, /proc, an HTTP endpoint.
 *
 * @throws Error naming `what` when `timeoutMs` passed; the last error of the probe is its cause
 */
export async function eventually<T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 30_000,
): Promise<T> {
  const end = performance.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      const value = await probe();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      last = error;
    }
    if (performance.now() > end) throw new Error(`gave up waiting for ${what}`, { cause: last });
    await pause(20);
  }
}
