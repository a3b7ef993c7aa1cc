import { DatabaseError } from 'pg';
import { errorMessage } from '../../../protocol/errors.ts';

/** What to do about an error of the database or of the connection to it. */
export type Failure =
  /** Another transaction was in the way: the same batch succeeds when it is run again. */
  | 'conflict'
  /** The server or the connection is away. */
  | 'outage'
  /** The statement itself is at fault. */
  | 'fault';

/** Thrown inside a transaction to run its batch again: a key appeared while it ran. */
export class BatchConflict extends Error {
  constructor() {
    super('another server changed the same items');
    this.name = 'BatchConflict';
  }
}

/** No connection could be made, for whatever reason the server gives. */
export class ConnectFailure extends Error {
  constructor(cause: unknown) {
    super(reasonOf(cause), { cause });
    this.name = 'ConnectFailure';
  }
}

/** The connection broke while the transaction was being committed: it may have happened or not. */
export class CommitUnknown extends Error {
  constructor(cause: unknown) {
    super(`it is not known whether the change was made: ${reasonOf(cause)}`, { cause });
    this.name = 'CommitUnknown';
  }
}

/** serialization_failure, deadlock_detected, lock_not_available, unique_violation. */
const CONFLICTS = new Set(['40001', '40P01', '55P03', '23505']);
/** insufficient_resources, operator_intervention, connection exceptions, bad credentials, no database. */
const OUTAGES = /^(53|57|08|28|3D)/;

export function failureOf(error: unknown): Failure {
  // The database itself refused the commit, so it did not happen.
  if (error instanceof CommitUnknown && error.cause instanceof DatabaseError) return failureOf(error.cause);
  if (error instanceof BatchConflict) return 'conflict';
  if (error instanceof ConnectFailure) return 'outage';
  if (error instanceof DatabaseError) {
    const code = error.code ?? '';
    if (CONFLICTS.has(code)) return 'conflict';
    return OUTAGES.test(code) ? 'outage' : 'fault';
  }
  // Mistakes of ours; everything else is the network or the driver's word for it.
  const ours = [TypeError, RangeError, ReferenceError, SyntaxError].some((kind) => error instanceof kind);
  return ours ? 'fault' : 'outage';
}

/** In words, without the credentials of the connection. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors[0] instanceof Error)
    return errorMessage(error.errors[0]);
  if (error instanceof DatabaseError && error.code !== undefined) return `${error.message} (${error.code})`;
  return errorMessage(error);
}
