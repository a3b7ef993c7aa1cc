import { readFileSync } from 'node:fs';
import type { Database } from 'better-sqlite3';

/** The time by which leases expire, in whole ms. */
export interface LedgerClock {
  now(): number;
}

/**
 * The clock of a ledger file: the machine's monotonic clock plus an offset kept in the file, so
 * that every process on this boot reads the same time and no step of the wall clock ends or
 * prolongs a lease. After a reboot it starts from the wall clock again. Call inside a transaction.
 *
 * Where the boot cannot be identified it is the wall clock.
 */
export function openLedgerClock(db: Database, boot: string | null = bootId()): LedgerClock {
  if (boot === null) return { now: () => Date.now() };
  const stored = db
    .prepare<[], { boot: string; offset_ms: number }>('SELECT boot, offset_ms FROM work_clock')
    .get();
  if (stored?.boot === boot) return clockAt(stored.offset_ms);
  const offset = Date.now() - monotonicMs();
  db.prepare('DELETE FROM work_clock').run();
  db.prepare('INSERT INTO work_clock (boot, offset_ms) VALUES (?, ?)').run(boot, offset);
  return clockAt(offset);
}

function clockAt(offset: number): LedgerClock {
  return { now: () => monotonicMs() + offset };
}

/** Milliseconds of CLOCK_MONOTONIC, which all processes of one boot share. */
function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

function bootId(): string | null {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return null;
  }
}
