import { cpus, loadavg } from 'node:os';

/** One figure: what, how much, and what it is held against. */
export interface Figure {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  /** What the design asks for; shown, never enforced: a figure is no test. */
  readonly target?: string;
}

/** Prints one line for a figure. */
export function print({ what, value, unit, target }: Figure): void {
  const number = value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(value >= 10 ? 1 : 2);
  const aim = target === undefined ? '' : `  (target ${target})`;
  process.stdout.write(`${what.padEnd(58)} ${number.padStart(10)} ${unit}${aim}\n`);
}

/** The machine and how busy it is, so that a figure can be judged. */
export function printMachine(): void {
  const [one = 0] = loadavg();
  process.stdout.write(
    `node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, load ${one.toFixed(2)}\n`,
  );
}

/** The value below which a share `q` lies. */
export function quantile(numbers: readonly number[], q: number): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}
