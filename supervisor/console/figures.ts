/** Figures as people read them. */

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** Bytes: `512 B`, `48.2 MiB`; nothing known is `-`. */
export function bytesText(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return '-';
  const power = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** power;
  return `${power === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[power] ?? 'B'}`;
}

/** A count: `950`, `12,345`. */
export function countText(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** A share of one core: `12%`, `0.4%`; nothing known is `-`. */
export function percentText(percent: number | null | undefined): string {
  if (percent === null || percent === undefined) return '-';
  return `${percent < 10 && percent > 0 ? percent.toFixed(1) : Math.round(percent)}%`;
}

/** `1 step`, `2 steps`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}
