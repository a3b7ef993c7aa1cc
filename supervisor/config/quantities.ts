/** Quantities with a unit, as people write them in flags, variables and files. */

const DURATION_UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

const K = 1024;
/** Powers of 1024 with or without the `i`, as systemd reads them; `kB`, `MB` … are powers of 1000. */
const BYTE_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  k: K,
  ki: K,
  kib: K,
  kb: 1e3,
  m: K ** 2,
  mi: K ** 2,
  mib: K ** 2,
  mb: 1e6,
  g: K ** 3,
  gi: K ** 3,
  gib: K ** 3,
  gb: 1e9,
  t: K ** 4,
  ti: K ** 4,
  tib: K ** 4,
  tb: 1e12,
};

/** The forms a duration may take, for the JSON Schema. */
export const DURATION_PATTERN = '^\\s*\\d+(\\.\\d+)?\\s*(ms|s|m|h)?\\s*$';
/** The forms a size may take, for the JSON Schema. */
export const BYTES_PATTERN = '^\\s*\\d+(\\.\\d+)?\\s*([kKmMgGtT]?[iI]?[bB]?)\\s*$';

/** Milliseconds of `250ms`, `30s`, `5m`, `4h` or plain seconds; null when it is none of them. */
export function parseDuration(value: string | number): number | null {
  const found = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)?\s*$/.exec(String(value));
  if (found === null) return null;
  const ms = Number(found[1]) * (DURATION_UNITS[found[2] ?? 's'] ?? Number.NaN);
  return Number.isFinite(ms) ? Math.round(ms) : null;
}

/** A duration in the largest unit that writes it exactly. */
export function formatDuration(ms: number): string {
  for (const unit of ['h', 'm', 's']) {
    const size = DURATION_UNITS[unit] ?? 1;
    if (ms >= size && ms % size === 0) return `${ms / size}${unit}`;
  }
  return ms === 0 ? '0s' : `${ms}ms`;
}

/** Bytes of `64Mi`, `512M`, `1GiB`, `100kB` or a plain number; null when it is none of them. */
export function parseBytes(value: string | number): number | null {
  const found = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/i.exec(String(value));
  if (found === null) return null;
  const unit = BYTE_UNITS[(found[2] ?? '').toLowerCase()];
  if (unit === undefined) return null;
  const bytes = Math.round(Number(found[1]) * unit);
  return Number.isSafeInteger(bytes) ? bytes : null;
}
