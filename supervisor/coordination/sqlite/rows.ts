import { PRIORITIES } from '../../../protocol/work-tools.ts';
import type { Priority, WorkStateName } from '../ledger.ts';
import type { Work, WorkState } from '../work-machine.ts';
import type { WorkItem } from '../work-table.ts';

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

/** The columns that change over an item's life. */
export interface MutableColumns {
  readonly state: WorkStateName;
  readonly attempt: number;
  readonly max_attempts: number;
  readonly last_error: string | null;
  readonly waiting_for: number;
  readonly not_before: number;
  readonly wake_at: number | null;
  readonly lease_id: string | null;
  readonly holder: string | null;
  readonly fencing: number | null;
  readonly expires_at: number | null;
  readonly renewed: number;
  readonly settled_at: number | null;
  readonly result: string | null;
}

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

const NO_LEASE = { lease_id: null, holder: null, fencing: null, expires_at: null, renewed: 0 } as const;
const BLANK = {
  ...NO_LEASE,
  waiting_for: 0,
  not_before: 0,
  wake_at: null,
  settled_at: null,
  result: null,
} as const;

export function columnsOf(work: Work, now: number): MutableColumns {
  const { attempt, state } = work;
  const common = {
    ...BLANK,
    state: state.at,
    attempt,
    max_attempts: work.maxAttempts,
    last_error: work.lastError,
  };
  switch (state.at) {
    case 'submitted':
      return { ...common, waiting_for: state.waitingFor, not_before: state.notBefore };
    case 'ready':
      return {
        ...common,
        not_before: state.notBefore,
        wake_at: state.notBefore > now ? state.notBefore : null,
      };
    case 'leased':
      return {
        ...common,
        ...leaseColumns(state),
        expires_at: state.expiresAt,
        renewed: state.renewed ? 1 : 0,
      };
    case 'done':
      return { ...common, ...leaseColumns(state), settled_at: state.since, result: state.result };
    case 'dead_letter':
      return { ...common, settled_at: state.since, waiting_for: state.waitingFor };
    case 'cancelled':
      return { ...common, settled_at: state.since };
  }
}

function leaseColumns(state: { leaseId: string; holder: string; fencing: number }): {
  lease_id: string;
  holder: string;
  fencing: number;
} {
  return { lease_id: state.leaseId, holder: state.holder, fencing: state.fencing };
}
