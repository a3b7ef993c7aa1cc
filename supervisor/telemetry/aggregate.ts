/** How the lines of many agents are told apart, and looked at one by one, in one stream. */

/**
 * Whether lines of an agent are to be written: it is one of `only`, or below one. Empty: all are.
 *
 * @param only agent paths, such as `0.2`
 */
export function pathFilter(only: readonly string[]): (path: string) => boolean {
  if (only.length === 0) return () => true;
  return (path) => only.some((wanted) => path === wanted || path.startsWith(`${wanted}.`));
}

/** Colours of the 256-colour palette that are legible on dark and on light ground, and apart from red. */
const PALETTE = [33, 34, 37, 63, 69, 71, 97, 99, 108, 130, 133, 136, 140, 143, 166, 173] as const;
const ROOT_PATH = '0';

/**
 * The colour of an agent's path: the same in every process and every run. Null for the supervisor,
 * which needs none.
 */
export function pathColor(path: string): number | null {
  if (path === ROOT_PATH) return null;
  // Neighbours get neighbouring places in a palette whose neighbours differ.
  const numbers = path.split('.').map(Number);
  const place = numbers.reduce((sum, number, depth) => sum + number * (2 * depth + 1), 0);
  return PALETTE[(place * 7) % PALETTE.length] ?? null;
}
