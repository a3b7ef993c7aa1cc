import { printable } from '../../telemetry/log-text.ts';
import type { Paint } from '../style.ts';

/** What one check came to. `warn`: it works, but less well than it could. `fail`: it will not work. */
export interface Finding {
  /** What was checked, a word or two. */
  readonly check: string;
  readonly verdict: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  /** What to do about it; null when all is well. */
  readonly remedy: string | null;
}

export function ok(check: string, detail: string): Finding {
  return { check, verdict: 'ok', detail, remedy: null };
}

export function warn(check: string, detail: string, remedy: string): Finding {
  return { check, verdict: 'warn', detail, remedy };
}

export function fail(check: string, detail: string, remedy: string): Finding {
  return { check, verdict: 'fail', detail, remedy };
}

const COLORS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;

/** One line for a finding, the remedy at its end. */
export function findingLine({ check, verdict, detail, remedy }: Finding, paint: Paint): string {
  const what = printable(remedy === null ? detail : `${detail}.`);
  const next = remedy === null ? '' : ` ${paint('dim', printable(remedy))}`;
  return `${paint(COLORS[verdict], verdict.padEnd(4))}  ${printable(check).padEnd(16)}  ${what}${next}`;
}

/** Exit code: 1 when something will not work. */
export function exitCodeFor(findings: readonly Finding[]): number {
  return findings.some(({ verdict }) => verdict === 'fail') ? 1 : 0;
}
