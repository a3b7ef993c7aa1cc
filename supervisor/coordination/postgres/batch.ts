import type { ClientBase } from 'pg';
import type { ClaimNextRequest, LedgerPolicy } from '../ledger.ts';
import { itemOf } from '../rows.ts';
import { DEFAULT_TENANT } from '../work-operations.ts';
import type { WorkItem } from '../work-table.ts';
import { BatchConflict, CommitUnknown } from './failures.ts';
import { LockedQueue } from './prefetch.ts';
import * as sql from './statements.ts';
import { PostgresWorkTable } from './work-table.ts';

/** One request: what it needs locked, and what it does once it is. */
export interface PostgresJob {
  readonly keys: readonly string[];
  readonly ids: readonly number[];
  /** How many new items and how many leases it may need. */
  readonly newItems: number;
  readonly newLeases: number;
  /** Set on claim_next. */
  readonly next: ClaimNextRequest | null;
  /** Whether running it again, after a commit that may have happened, gives the caller the same. */
  readonly repeatable: boolean;
  readonly run: (table: PostgresWorkTable, queueOf: QueueOf) => unknown;
}

/** The locked front of the queue for what a request wants. */
export type QueueOf = (request: ClaimNextRequest) => LockedQueue;

export interface BatchResult {
  readonly values: readonly unknown[];
  /** Whether the set of claimable items grew. */
  readonly readied: boolean;
}

/** Claims of all servers take turns where a quota must hold over all of them. */
const QUOTA_LOCK = 4_711_202_602;

/** Runs the jobs in one transaction on `client`. Nothing of it remains when this throws. */
export function runBatch(
  client: ClientBase,
  jobs: readonly PostgresJob[],
  policy: LedgerPolicy,
  slot: number,
): Promise<BatchResult> {
  return transaction(client, async () => {
    const leases = jobs.reduce((sum, job) => sum + job.newLeases, 0);
    if (policy.tenantQuota !== null && leases > 0) {
      await client.query('SELECT pg_advisory_xact_lock($1)', [QUOTA_LOCK]);
    }
    const { table, queueOf } = await load(client, jobs, policy, leases);
    const values = jobs.map((job) => job.run(table, queueOf));
    await write(client, table, slot);
    return { values, readied: table.opened.size > 0 };
  });
}

/** Runs `work` on an empty table in one transaction and stores what it changed. */
export function inBatch<T>(
  client: ClientBase,
  slot: number,
  work: (table: PostgresWorkTable) => Promise<T>,
): Promise<{ readonly value: T; readonly readied: boolean }> {
  return transaction(client, async () => {
    const { rows } = await client.query<{ now: number }>('SELECT agentd.ledger_now() AS now');
    const now = rows[0]?.now ?? 0;
    const nothing = { items: [], dependents: new Map(), ids: [], fencings: [], inFlight: new Map() };
    const table = new PostgresWorkTable({ ...nothing, now });
    const value = await work(table);
    await write(client, table, slot);
    return { value, readied: table.opened.size > 0 };
  });
}

async function transaction<T>(client: ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query('BEGIN');
  try {
    const value = await work();
    await commit(client);
    return value;
  } catch (error) {
    // On a broken connection this fails too; the server rolls back by itself then.
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

async function commit(client: ClientBase): Promise<void> {
  try {
    await client.query('COMMIT');
  } catch (error) {
    throw new CommitUnknown(error);
  }
}

async function load(
  client: ClientBase,
  jobs: readonly PostgresJob[],
  policy: LedgerPolicy,
  leases: number,
): Promise<{ readonly table: PostgresWorkTable; readonly queueOf: QueueOf }> {
  const keys = [...new Set(jobs.flatMap((job) => job.keys))];
  const ids = [...new Set(jobs.flatMap((job) => job.ids))];
  const locked =
    keys.length + ids.length === 0 ? [] : (await client.query<sql.ItemRow>(sql.lockItems(keys, ids))).rows;
  const newItems = jobs.reduce((sum, job) => sum + job.newItems, 0);
  const queues = await lockQueues(client, jobs, policy);
  const items = distinct([...locked.map(itemOf), ...[...queues.values()].flatMap((queue) => queue.items)]);
  const reserved = await client.query<sql.Reserved>(
    sql.reserve(
      newItems,
      leases + 1,
      items.map((item) => item.id),
    ),
  );
  const [row] = reserved.rows;
  if (row === undefined) throw new RangeError('the database reserved nothing');
  const dependents = new Map<number, number[]>();
  for (const [on, item] of row.edges ?? []) dependents.set(on, [...(dependents.get(on) ?? []), item]);
  const known = new Set(items.map((item) => item.id));
  const missing = [...new Set([...dependents.values()].flat())].filter((id) => !known.has(id));
  if (missing.length > 0) {
    const { rows } = await client.query<sql.ItemRow>(sql.lockItems([], missing));
    items.push(...rows.map(itemOf));
  }
  const tenants = [...new Set([...items.map((item) => item.tenant), DEFAULT_TENANT])];
  const inFlight = new Map<string, number>();
  if (policy.tenantQuota !== null && leases > 0) {
    const counted = await client.query<{ tenant: string; leases: number }>(
      sql.countLeases(tenants, policy.tenantQuota),
    );
    for (const { tenant, leases: held } of counted.rows) inFlight.set(tenant, held);
  }
  const table = new PostgresWorkTable({
    now: row.now,
    items,
    dependents,
    ids: row.ids.map(Number),
    fencings: row.fencings.map(Number),
    inFlight,
  });
  return { table, queueOf: (request) => queues.get(signature(request)) ?? LockedQueue.empty(policy) };
}

/** One queue for each set of kinds and tenants that is asked for. */
async function lockQueues(
  client: ClientBase,
  jobs: readonly PostgresJob[],
  policy: LedgerPolicy,
): Promise<ReadonlyMap<string, LockedQueue>> {
  const groups = new Map<string, ClaimNextRequest[]>();
  for (const { next } of jobs) {
    if (next !== null) groups.set(signature(next), [...(groups.get(signature(next)) ?? []), next]);
  }
  const queues = new Map<string, LockedQueue>();
  for (const [wanted, requests] of groups)
    queues.set(wanted, await LockedQueue.lock(client, requests, policy));
  return queues;
}

function signature({ kinds, tenants }: ClaimNextRequest): string {
  return JSON.stringify([kinds, tenants]);
}

function distinct(items: readonly WorkItem[]): WorkItem[] {
  return [...new Map(items.map((item) => [item.id, item])).values()];
}

async function write(client: ClientBase, table: PostgresWorkTable, slot: number): Promise<void> {
  const { now } = table;
  if (table.removed.size > 0) {
    await client.query(sql.removeEdgesOf([...table.removed]));
    await client.query(sql.removeItems([...table.removed]));
  }
  if (table.inserted.size > 0) {
    const { rowCount } = await client.query(sql.insertItems([...table.inserted.values()], now));
    // Another server inserted one of the keys first: what was decided here no longer holds.
    if (rowCount !== table.inserted.size) throw new BatchConflict();
  }
  if (table.changed.size > 0) await client.query(sql.updateItems([...table.changed.values()], now));
  if (table.cut.size > 0) await client.query(sql.cutEdges([...table.cut]));
  const edges = table.edges.filter(({ on, item }) => !table.cut.has(on) && table.byId(item) !== null);
  if (edges.length > 0) {
    await client.query(
      sql.addEdges(
        edges.map(({ on }) => on),
        edges.map(({ item }) => item),
      ),
    );
  }
  await openLanes(client, table);
  if (table.turns.size > 0) await client.query(sql.serve([...table.turns.keys()], [...table.turns.values()]));
  const { pending, claimed, done, dead_letter } = table.totals;
  if (pending !== 0 || claimed !== 0 || done !== 0 || dead_letter !== 0) {
    await client.query(sql.addTotals(slot, pending, claimed, done, dead_letter));
  }
}

async function openLanes(client: ClientBase, table: PostgresWorkTable): Promise<void> {
  const lanes = [...table.opened.values()];
  if (lanes.length === 0) return;
  const columns = [
    lanes.map((lane) => lane.tenant),
    lanes.map((lane) => lane.priority),
    lanes.map((lane) => lane.kind),
  ];
  // Housekeeping may take an emptied lane away at the same moment; a few rounds settle it.
  for (let round = 0; round < 5; round++) {
    const { rowCount } = await client.query(sql.keepLanes(...columns));
    if (rowCount === lanes.length) return;
    await client.query(sql.openLanes(...columns));
  }
  throw new BatchConflict();
}
