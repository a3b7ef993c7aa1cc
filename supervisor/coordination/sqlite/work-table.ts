import type { Database, Statement } from 'better-sqlite3';
import type { WorkStateName } from '../ledger.ts';
import type { Work } from '../work-machine.ts';
import { PRIORITY_RANK, type WorkItem, type WorkTable } from '../work-table.ts';
import { columnsOf, itemOf, type MutableColumns, type Row } from './rows.ts';

const ID = 'seq.id';
const FENCING = 'seq.fencing';
/** Which count a state belongs to. */
const COUNT: Readonly<Record<WorkStateName, string | null>> = {
  submitted: 'count.pending',
  ready: 'count.pending',
  leased: 'count.claimed',
  done: 'count.done',
  dead_letter: 'count.dead_letter',
  cancelled: null,
};

/**
 * The open transaction on a ledger file. Counts and sequences are changed in memory and written
 * once by `flush`, so that a batch touches their page once.
 */
export class SqliteWorkTable implements WorkTable {
  now = 0;
  /** Whether the set of claimable items grew. */
  readied = false;
  private readonly tally = new Map<string, { value: number; readonly stored: number }>();
  private readonly lanesSeen = new Set<string>();
  private readonly sql;

  constructor(db: Database) {
    this.sql = statements(db);
  }

  /** Forgets what an earlier transaction cached: another process may have written since. */
  begin(now: number): void {
    this.now = now;
    this.readied = false;
    this.tally.clear();
    this.lanesSeen.clear();
  }

  /** Writes sequences and counts. Call before COMMIT. */
  flush(): void {
    for (const [name, { value, stored }] of this.tally) {
      if (value === stored) continue;
      if (value === 0 && name.startsWith('lease.')) this.sql.dropTally.run(name);
      else this.sql.setTally.run(name, value);
    }
  }

  byKey(key: string): WorkItem | null {
    const row = this.sql.byKey.get(key);
    return row === undefined ? null : itemOf(row);
  }

  byId(id: number): WorkItem | null {
    const row = this.sql.byId.get(id);
    return row === undefined ? null : itemOf(row);
  }

  newId(): number {
    return this.add(ID, 1);
  }

  get nextFencing(): number {
    return this.read(FENCING) + 1;
  }

  useFencing(): void {
    this.add(FENCING, 1);
  }

  insert(item: WorkItem, dependsOn: readonly number[]): void {
    const columns = columnsOf(item.work, this.now);
    this.sql.insert.run({
      ...columns,
      id: item.id,
      claim_key: item.key,
      item: item.item,
      kind: item.kind,
      tenant: item.tenant,
      priority: PRIORITY_RANK[item.priority],
      created_at: item.createdAt,
      enqueued_at: item.enqueuedAt,
    });
    for (const on of dependsOn) this.sql.depend.run(on, item.id);
    this.account(item, null, columns);
  }

  save(before: WorkItem, after: Work): void {
    const columns = columnsOf(after, this.now);
    this.sql.update.run({ ...columns, id: before.id });
    this.account(before, before.work.state.at, columns);
  }

  remove(item: WorkItem): void {
    this.sql.undepend.run(item.id);
    this.sql.remove.run(item.id);
    const count = COUNT[item.work.state.at];
    if (count !== null) this.add(count, -1);
  }

  inFlight(tenant: string): number {
    return this.read(`lease.${tenant}`);
  }

  takeDependents(id: number): readonly WorkItem[] {
    const rows = this.sql.dependents.all(id);
    if (rows.length > 0) this.sql.cutDependents.run(id);
    return rows.map(itemOf);
  }

  /** Makes the lane of a claimable item known, at the end of the turn order when it is new. */
  open(tenant: string, priority: number, kind: string): void {
    this.readied = true;
    const lane = `${priority} ${kind.length} ${kind} ${tenant}`;
    if (this.lanesSeen.has(lane)) return;
    this.lanesSeen.add(lane);
    this.sql.openLane.run({ tenant, priority, kind, turn: this.read(FENCING) });
  }

  /** An emptied lane is gone: the next item opens it again. */
  shut(tenant: string, priority: number, kind: string): void {
    this.lanesSeen.delete(`${priority} ${kind.length} ${kind} ${tenant}`);
    this.sql.shutLane.run(tenant, priority, kind);
  }

  private account(item: WorkItem, was: WorkStateName | null, columns: MutableColumns): void {
    const from = was === null ? null : COUNT[was];
    const to = COUNT[columns.state];
    if (from !== to) {
      if (from !== null) this.add(from, -1);
      if (to !== null) this.add(to, 1);
    }
    if (was !== 'leased' && columns.state === 'leased') this.add(`lease.${item.tenant}`, 1);
    if (was === 'leased' && columns.state !== 'leased') this.add(`lease.${item.tenant}`, -1);
    if (columns.state === 'ready' && columns.wake_at === null) {
      this.open(item.tenant, PRIORITY_RANK[item.priority], item.kind);
    }
  }

  private read(name: string): number {
    return this.entry(name).value;
  }

  private add(name: string, by: number): number {
    const entry = this.entry(name);
    entry.value += by;
    return entry.value;
  }

  private entry(name: string): { value: number; readonly stored: number } {
    let entry = this.tally.get(name);
    if (entry === undefined) {
      const stored = this.sql.getTally.get(name)?.value ?? 0;
      entry = { value: stored, stored };
      this.tally.set(name, entry);
    }
    return entry;
  }
}

const MUTABLE = [
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
const FIXED = ['id', 'claim_key', 'item', 'kind', 'tenant', 'priority', 'created_at', 'enqueued_at'] as const;

function statements(db: Database) {
  const columns = [...FIXED, ...MUTABLE];
  const key: Statement<[string], Row> = db.prepare('SELECT * FROM work_item WHERE claim_key = ?');
  const id: Statement<[number], Row> = db.prepare('SELECT * FROM work_item WHERE id = ?');
  const dependents: Statement<[number], Row> = db.prepare(
    'SELECT w.* FROM work_dependency d JOIN work_item w ON w.id = d.item_id WHERE d.on_id = ? ORDER BY w.id',
  );
  const getTally: Statement<[string], { value: number }> = db.prepare(
    'SELECT value FROM work_tally WHERE name = ?',
  );
  return {
    byKey: key,
    byId: id,
    dependents,
    getTally,
    insert: db.prepare(
      `INSERT INTO work_item (${columns.join(', ')}) VALUES (${columns.map((name) => `@${name}`).join(', ')})`,
    ),
    update: db.prepare(
      `UPDATE work_item SET ${MUTABLE.map((name) => `${name} = @${name}`).join(', ')} WHERE id = @id`,
    ),
    remove: db.prepare('DELETE FROM work_item WHERE id = ?'),
    depend: db.prepare('INSERT INTO work_dependency (on_id, item_id) VALUES (?, ?)'),
    undepend: db.prepare('DELETE FROM work_dependency WHERE item_id = ?'),
    cutDependents: db.prepare('DELETE FROM work_dependency WHERE on_id = ?'),
    setTally: db.prepare(
      'INSERT INTO work_tally (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    ),
    dropTally: db.prepare('DELETE FROM work_tally WHERE name = ?'),
    // A tenant keeps its place in the order when it opens another lane.
    openLane: db.prepare(
      `INSERT INTO work_lane (tenant, priority, kind, turn)
       VALUES (@tenant, @priority, @kind, coalesce((SELECT max(turn) FROM work_lane WHERE tenant = @tenant), @turn))
       ON CONFLICT DO NOTHING`,
    ),
    shutLane: db.prepare('DELETE FROM work_lane WHERE tenant = ? AND priority = ? AND kind = ?'),
  };
}
