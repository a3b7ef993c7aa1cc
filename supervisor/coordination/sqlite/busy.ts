import { setTimeout as pause } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { AgentdError, errorMessage } from '../../../protocol/errors.ts';

/** How long a write waits for its turn among other processes before the caller hears of it, ms. */
const BUSY_BUDGET_MS = 30_000;
/** Between two tries for the lock, ms. */
const LONGEST_PAUSE_MS = 10;

/** Tries until no other process is in the way, with a growing random pause that lets the loop turn. */
export async function whenFree<T>(attempt: () => T, path: string): Promise<T> {
  const end = performance.now() + BUSY_BUDGET_MS;
  for (let tries = 0; ; tries++) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (performance.now() > end) {
        throw new AgentdError(
          'LEDGER_UNAVAILABLE',
          `the ledger ${path} was locked by other processes for ${BUSY_BUDGET_MS} ms`,
          { cause: error },
        );
      }
      await pause(Math.random() * Math.min(2 ** tries, LONGEST_PAUSE_MS));
    }
  }
}

export function isBusy(error: unknown): boolean {
  return isSqliteError(error) && error.code.startsWith('SQLITE_BUSY');
}

export function isSqliteError(error: unknown): error is InstanceType<typeof Sqlite.SqliteError> {
  return error instanceof Sqlite.SqliteError;
}

export function reasonOf(error: unknown): string {
  return isSqliteError(error) ? `${errorMessage(error)} (${error.code})` : errorMessage(error);
}
