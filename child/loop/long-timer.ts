/** Node fires longer timers at once. */
const LONGEST_DELAY_MS = 2 ** 31 - 1;

/**
 * Calls `fire` once after `ms`, however long that is.
 *
 * @returns cancels it
 */
export function startTimer(ms: number, fire: () => void): () => void {
  let left = ms;
  let handle: NodeJS.Timeout;
  const arm = (): void => {
    const piece = Math.min(left, LONGEST_DELAY_MS);
    left -= piece;
    handle = setTimeout(() => (left > 0 ? arm() : fire()), piece);
  };
  arm();
  return () => clearTimeout(handle);
}
