import type { Database, Statement } from 'better-sqlite3';
import { CHANGING, changingValues, itemOf, type Row } from '../rows.ts';
import type { Work } from '../work-model.ts';
import { PRIORITY_RANK, type WorkItem, type WorkTable } from '../work-table.ts';
import { Totals } from './totals.ts';

const FIXED = ['id', 'claim_key', 'item', 'kind', 'tenant', 'priority', 'created_at', 'enqueued_at'] as const;

/** The open transaction on a ledger file. */
export class SqliteWorkTable implements WorkTable {
  now = 0;
  /** Whether the set of claimable items grew. */
  readied = false;
  private readonly totals: Totals;
  private readonly lanes = new Set<string>();
  private readonly sql;

  constructor(db: Database) {
    this.totals = new Totals(db);
    this.sql = statements(db);
  }

  begin(now: number): void {
    this.now = now;
    this.readied = false;
    this.lanes.clear();
    this.totals.begin();
  }

  /** Writes what was kept in memory. Call before COMMIT. */
  flush(): void {
    this.totals.flush();
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
    return this.totals.newId();
  }

  get nextFencing(): number {
    return this.totals.lastFencing + 1;
  }

  takeFencing(): void {
    this.totals.takeFencing();
  }

  insert(item: WorkItem, dependsOn: readonly number[]): void {
    const { id, key, kind, tenant, createdAt, enqueuedAt } = item;
    const rank = PRIORITY_RANK[item.priority];
    const values = changingValues(item.work, this.now);
    this.sql.insert.run(id, key, item.item, kind, tenant, rank, createdAt, enqueuedAt, ...values);
    for (const on of dependsOn) this.sql.depend.run(on, id);
    this.totals.move(tenant, null, item.work.state.at);
    this.offer(item, item.work);
  }

  save(before: WorkItem, after: Work): void {
    this.sql.update.run(...changingValues(after, this.now), before.id);
    this.totals.move(before.tenant, before.work.state.at, after.state.at);
    this.offer(before, after);
  }

  remove(item: WorkItem): void {
    this.sql.undepend.run(item.id);
    this.sql.remove.run(item.id);
    this.totals.move(item.tenant, item.work.state.at, null);
  }

  inFlight(tenant: string): number {
    return this.totals.inFlight(tenant);
  }

  takeDependents(id: number): readonly WorkItem[] {
    const rows = this.sql.dependents.all(id);
    if (rows.length > 0) this.sql.cutDependents.run(id);
    return rows.map(itemOf);
  }

  /** Makes the lane of a claimable item known, at the end of the turn order when it is new. */
  open(tenant: string, priority: number, kind: string): void {
    this.readied = true;
    const lane = laneName(tenant, priority, kind);
    if (this.lanes.has(lane)) return;
    this.lanes.add(lane);
    this.sql.openLane.run({ tenant, priority, kind, turn: this.totals.lastFencing });
  }

  /** An emptied lane is gone: the next item opens it again. */
  shut(tenant: string, priority: number, kind: string): void {
    this.lanes.delete(laneName(tenant, priority, kind));
    this.sql.shutLane.run(tenant, priority, kind);
  }

  private offer(item: WorkItem, work: Work): void {
    if (work.state.at === 'ready' && work.state.notBefore <= this.now) {
      this.open(item.tenant, PRIORITY_RANK[item.priority], item.kind);
    }
  }
}

function laneName(tenant: string, priority: number, kind: string): string {
  return `${priority} ${kind.length} ${kind} ${tenant}`;
}

function statements(db: Database) {
  const columns = [...FIXED, ...CHANGING];
  const byKey: Statement<[string], Row> = db.prepare('SELECT * FROM work_item WHERE claim_key = ?');
  const byId: Statement<[number], Row> = db.prepare('SELECT * FROM work_item WHERE id = ?');
  const dependents: Statement<[number], Row> = db.prepare(
    'SELECT w.* FROM work_dependency d JOIN work_item w ON w.id = d.item_id WHERE d.on_id = ? ORDER BY d.item_id',
  );
  return {
    byKey,
    byId,
    dependents,
    insert: db.prepare(
      `INSERT INTO work_item (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
    ),
    update: db.prepare(
      `UPDATE work_item SET ${CHANGING.map((name) => `${name} = ?`).join(', ')} WHERE id = ?`,
    ),
    remove: db.prepare('DELETE FROM work_item WHERE id = ?'),
    depend: db.prepare('INSERT INTO work_dependency (on_id, item_id) VALUES (?, ?)'),
    undepend: db.prepare('DELETE FROM work_dependency WHERE item_id = ?'),
    cutDependents: db.prepare('DELETE FROM work_dependency WHERE on_id = ?'),
    // A tenant keeps its place in the order when it opens another lane.
    openLane: db.prepare(
      `INSERT INTO work_lane (tenant, priority, kind, turn)
       VALUES (@tenant, @priority, @kind, coalesce((SELECT max(turn) FROM work_lane WHERE tenant = @tenant), @turn))
       ON CONFLICT DO NOTHING`,
    ),
    shutLane: db.prepare('DELETE FROM work_lane WHERE tenant = ? AND priority = ? AND kind = ?'),
  };
}
