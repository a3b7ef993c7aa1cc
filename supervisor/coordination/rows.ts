import { PRIORITIES } from '../../protocol/work-tools.ts';
import type { Priority, WorkStateName } from './ledger.ts';
import type { Work, WorkState } from './work-model.ts';
import type { WorkItem } from './work-table.ts';

/** A row of work_item, and its translation from and to the machine's state. */
export interface Row {
  readonly id: number;
  readonly claim_key: string;
  readonly item: string;
  readonly kind: string;
  readonly tenant: string;
  readonly priority: number;
  readonly created_at: number;
  readonly enqueued_at: number;
  readonly state: WorkStateName;
  readonly attempt: number;
  readonly max_attempts: number;
  readonly last_error: string | null;
  readonly waiting_for: number;
  readonly not_before: number;
  readonly lease_id: string | null;
  readonly holder: string | null;
  readonly fencing: number | null;
  readonly expires_at: number | null;
  readonly renewed: number;
  readonly settled_at: number | null;
  readonly result: string | null;
}

/** The columns that change over an item's life, in the order of `changingValues`. */
export const CHANGING = [
  'state',
  'attempt',
  'max_attempts',
  'last_error',
  'waiting_for',
  'not_before',
  'wake_at',
  'lease_id',
  'holder',
  'fencing',
  'expires_at',
  'renewed',
  'settled_at',
  'result',
] as const;

export function itemOf(row: Row): WorkItem {
  return {
    id: row.id,
    key: row.claim_key,
    item: row.item,
    kind: row.kind,
    tenant: row.tenant,
    priority: priorityOf(row.priority),
    createdAt: row.created_at,
    enqueuedAt: row.enqueued_at,
    work: {
      attempt: row.attempt,
      maxAttempts: row.max_attempts,
      lastError: row.last_error,
      state: stateOf(row),
    },
  };
}

function priorityOf(rank: number): Priority {
  return PRIORITIES[rank] ?? 'normal';
}

function stateOf(row: Row): WorkState {
  const lease = { leaseId: row.lease_id ?? '', holder: row.holder ?? '', fencing: row.fencing ?? 0 };
  const since = row.settled_at ?? 0;
  switch (row.state) {
    case 'submitted':
      return { at: 'submitted', waitingFor: row.waiting_for, notBefore: row.not_before };
    case 'ready':
      return { at: 'ready', notBefore: row.not_before };
    case 'leased':
      return { at: 'leased', ...lease, expiresAt: row.expires_at ?? 0, renewed: row.renewed === 1 };
    case 'done':
      return { at: 'done', ...lease, since, result: row.result };
    case 'dead_letter':
      return { at: 'dead_letter', since, waitingFor: row.waiting_for };
    case 'cancelled':
      return { at: 'cancelled', since };
  }
}

/** Positional and without intermediate objects: this runs twice per item, in the one writer. */
export function changingValues(work: Work, now: number): readonly (string | number | null)[] {
  const { attempt, maxAttempts, lastError, state } = work;
  const { at } = state;
  switch (at) {
    case 'submitted': {
      const { waitingFor, notBefore } = state;
      return [
        at,
        attempt,
        maxAttempts,
        lastError,
        waitingFor,
        notBefore,
        null,
        null,
        null,
        null,
        null,
        0,
        null,
        null,
      ];
    }
    case 'ready': {
      const { notBefore } = state;
      const wakeAt = notBefore > now ? notBefore : null;
      return [
        at,
        attempt,
        maxAttempts,
        lastError,
        0,
        notBefore,
        wakeAt,
        null,
        null,
        null,
        null,
        0,
        null,
        null,
      ];
    }
    case 'leased': {
      const { leaseId, holder, fencing, expiresAt } = state;
      const renewed = state.renewed ? 1 : 0;
      return [
        at,
        attempt,
        maxAttempts,
        lastError,
        0,
        0,
        null,
        leaseId,
        holder,
        fencing,
        expiresAt,
        renewed,
        null,
        null,
      ];
    }
    case 'done': {
      const { leaseId, holder, fencing, since, result } = state;
      return [
        at,
        attempt,
        maxAttempts,
        lastError,
        0,
        0,
        null,
        leaseId,
        holder,
        fencing,
        null,
        0,
        since,
        result,
      ];
    }
    case 'dead_letter': {
      const { since, waitingFor } = state;
      return [
        at,
        attempt,
        maxAttempts,
        lastError,
        waitingFor,
        0,
        null,
        null,
        null,
        null,
        null,
        0,
        since,
        null,
      ];
    }
    case 'cancelled':
      return [at, attempt, maxAttempts, lastError, 0, 0, null, null, null, null, null, 0, state.since, null];
  }
}
