/**
 * The candidate a mistyped name most likely meant, or null when none is near. Near: at most a third
 * of the longer name differs (Damerau-Levenshtein), or one begins with the other.
 */
export function nearest(name: string, candidates: Iterable<string>): string | null {
  let best: string | null = null;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const length = Math.max(name.length, candidate.length);
    const prefix = Math.min(name.length, candidate.length) >= 4 && startsEither(name, candidate);
    const allowed = Math.max(1, Math.floor(length / 3));
    const distance = prefix ? 1 : editDistance(normal(name), normal(candidate));
    if (distance <= allowed && distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** ` (did you mean X?)`, or nothing. */
export function didYouMean(name: string, candidates: Iterable<string>): string {
  const found = nearest(name, candidates);
  return found === null ? '' : ` (did you mean ${found}?)`;
}

function normal(name: string): string {
  return name.toLowerCase().replaceAll('-', '_');
}

function startsEither(a: string, b: string): boolean {
  return normal(a).startsWith(normal(b)) || normal(b).startsWith(normal(a));
}

function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const same = a[row - 1] === b[column - 1];
      let cost = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        cost = Math.min(cost, (beforeLast[column - 2] ?? 0) + 1);
      }
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length] ?? 0;
}
