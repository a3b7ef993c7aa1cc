import type { WorkStateName } from '../ledger.ts';
import type { Work } from '../work-model.ts';
import { PRIORITY_RANK, type WorkItem, type WorkTable } from '../work-table.ts';

/** A lane that must exist after the transaction. */
export interface OpenedLane {
  readonly tenant: string;
  readonly priority: number;
  readonly kind: string;
}

export interface Totals {
  pending: number;
  claimed: number;
  done: number;
  dead_letter: number;
}

const COUNT: Readonly<Record<WorkStateName, keyof Totals | null>> = {
  submitted: 'pending',
  ready: 'pending',
  leased: 'claimed',
  done: 'done',
  dead_letter: 'dead_letter',
  cancelled: null,
};

/** What was read, under lock, before the jobs of a batch run. */
export interface Loaded {
  readonly now: number;
  readonly items: readonly WorkItem[];
  /** Item ids by the id they depend on. */
  readonly dependents: ReadonlyMap<number, readonly number[]>;
  /** Enough for every job of the batch. */
  readonly ids: readonly number[];
  readonly fencings: readonly number[];
  /** Leases per tenant; empty when no quota is set. */
  readonly inFlight: ReadonlyMap<string, number>;
}

/**
 * The rows of one batch in memory. Jobs run against it without waiting; what they changed is then
 * written in a few statements.
 */
export class PostgresWorkTable implements WorkTable {
  readonly now: number;
  readonly inserted = new Map<number, WorkItem>();
  readonly changed = new Map<number, WorkItem>();
  readonly removed = new Set<number>();
  readonly edges: { readonly on: number; readonly item: number }[] = [];
  readonly cut = new Set<number>();
  readonly opened = new Map<string, OpenedLane>();
  readonly totals: Totals = { pending: 0, claimed: 0, done: 0, dead_letter: 0 };
  /** Fencing token of the last grant, by tenant. */
  readonly turns = new Map<string, number>();
  private readonly items = new Map<number, WorkItem>();
  private readonly keys = new Map<string, number>();
  private readonly dependents: Map<number, readonly number[]>;
  private readonly leases: Map<string, number>;
  private readonly ids: number[];
  private readonly fencings: number[];

  constructor(loaded: Loaded) {
    this.now = loaded.now;
    this.ids = [...loaded.ids];
    this.fencings = [...loaded.fencings];
    this.dependents = new Map(loaded.dependents);
    this.leases = new Map(loaded.inFlight);
    for (const item of loaded.items) this.hold(item);
  }

  /** Adds rows that were locked later in the same transaction. */
  hold(item: WorkItem): void {
    this.items.set(item.id, item);
    this.keys.set(item.key, item.id);
  }

  byKey(key: string): WorkItem | null {
    const id = this.keys.get(key);
    return id === undefined ? null : this.byId(id);
  }

  byId(id: number): WorkItem | null {
    return this.items.get(id) ?? null;
  }

  newId(): number {
    return taken(this.ids.shift());
  }

  get nextFencing(): number {
    return taken(this.fencings[0]);
  }

  takeFencing(): void {
    this.fencings.shift();
  }

  insert(item: WorkItem, dependsOn: readonly number[]): void {
    this.hold(item);
    this.inserted.set(item.id, item);
    for (const on of dependsOn) {
      this.edges.push({ on, item: item.id });
      this.dependents.set(on, [...(this.dependents.get(on) ?? []), item.id]);
    }
    this.move(item, null, item.work);
  }

  save(before: WorkItem, after: Work): void {
    const item = { ...before, work: after };
    this.hold(item);
    if (this.inserted.has(item.id)) this.inserted.set(item.id, item);
    else this.changed.set(item.id, item);
    this.move(item, before.work.state.at, after);
  }

  remove(item: WorkItem): void {
    this.items.delete(item.id);
    this.keys.delete(item.key);
    this.changed.delete(item.id);
    if (!this.inserted.delete(item.id)) this.removed.add(item.id);
    this.count(item.tenant, item.work.state.at, null);
  }

  inFlight(tenant: string): number {
    return this.leases.get(tenant) ?? 0;
  }

  takeDependents(id: number): readonly WorkItem[] {
    const ids = this.dependents.get(id) ?? [];
    if (ids.length > 0) this.cut.add(id);
    this.dependents.delete(id);
    return ids.flatMap((each) => this.items.get(each) ?? []);
  }

  /** Makes sure that the lane exists once this is committed. */
  open(tenant: string, priority: number, kind: string): void {
    this.opened.set(`${priority} ${kind.length} ${kind} ${tenant}`, { tenant, priority, kind });
  }

  private move(item: WorkItem, from: WorkStateName | null, work: Work): void {
    const { state } = work;
    this.count(item.tenant, from, state.at);
    if (state.at === 'ready' && state.notBefore <= this.now) {
      this.open(item.tenant, PRIORITY_RANK[item.priority], item.kind);
    }
  }

  private count(tenant: string, from: WorkStateName | null, to: WorkStateName | null): void {
    if (from === to) return;
    const less = from === null ? null : COUNT[from];
    const more = to === null ? null : COUNT[to];
    if (less !== null) this.totals[less] -= 1;
    if (more !== null) this.totals[more] += 1;
    const leases = (to === 'leased' ? 1 : 0) - (from === 'leased' ? 1 : 0);
    if (leases !== 0) this.leases.set(tenant, this.inFlight(tenant) + leases);
  }
}

function taken(value: number | undefined): number {
  if (value === undefined) throw new RangeError('a batch ran out of reserved numbers');
  return value;
}
