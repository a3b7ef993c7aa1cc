import { randomUUID } from 'node:crypto';
import type {
  AckRequest,
  ClaimAnswer,
  ClaimedWork,
  ClaimRequest,
  LedgerPolicy,
  ReleaseRequest,
  RenewRequest,
  SettleAnswer,
  SubmitAnswer,
  SubmitRequest,
  WorkRecord,
} from './ledger.ts';
import { newWork, step } from './work-machine.ts';
import type { Answer, Step, Work, WorkEvent } from './work-model.ts';
import type { WorkItem, WorkTable } from './work-table.ts';

/** What each request does inside a transaction: load, ask the machine, store. Shared by all adapters. */

/** Who submitted nothing but claimed: the attributes an item gets. */
export const DEFAULT_KIND = 'default';
export const DEFAULT_TENANT = 'default';

export function claimOne(table: WorkTable, policy: LedgerPolicy, request: ClaimRequest): ClaimAnswer {
  const found = table.byKey(request.key);
  const item = found ?? {
    id: table.newId(),
    key: request.key,
    item: request.item,
    kind: DEFAULT_KIND,
    tenant: DEFAULT_TENANT,
    priority: 'normal' as const,
    createdAt: table.now,
    enqueuedAt: table.now,
    work: newWork({ maxAttempts: policy.maxAttempts, notBefore: table.now, waitingFor: 0 }),
  };
  const taken = take(table, policy, item, request.holder, request.ttlMs);
  if (found === null) table.insert({ ...item, work: taken.work }, []);
  else store(table, found, taken);
  return claimAnswer(taken.answer);
}

/** Grants an item the ledger chose itself. Null when it turned out not to be free. */
export function claimChosen(
  table: WorkTable,
  policy: LedgerPolicy,
  item: WorkItem,
  request: { readonly holder: string; readonly ttlMs: number },
): ClaimedWork | null {
  const taken = take(table, policy, item, request.holder, request.ttlMs);
  store(table, item, taken);
  const answer = claimAnswer(taken.answer);
  if (!answer.granted) return null;
  const { leaseId, expiresInMs, fencingToken, attempt } = answer;
  const { key, kind, tenant } = item;
  return { workId: key, item: item.item, kind, tenant, leaseId, expiresInMs, fencingToken, attempt };
}

function take(table: WorkTable, policy: LedgerPolicy, item: WorkItem, holder: string, ttlMs: number): Step {
  const overQuota = policy.tenantQuota !== null && table.inFlight(item.tenant) >= policy.tenantQuota;
  const lease = { leaseId: `${item.id}-${randomUUID()}`, holder, fencing: table.nextFencing };
  const taken = step(item.work, { type: 'claim', now: table.now, ttlMs, lease, overQuota });
  if (taken.answer.type === 'granted' && !taken.answer.again) table.takeFencing();
  return taken;
}

function claimAnswer(answer: Answer): ClaimAnswer {
  switch (answer.type) {
    case 'granted':
      return {
        granted: true,
        leaseId: answer.lease.leaseId,
        expiresInMs: answer.expiresInMs,
        fencingToken: answer.lease.fencing,
        attempt: answer.attempt,
      };
    case 'held':
      return { granted: false, heldBy: answer.by, retryAfterMs: answer.retryAfterMs };
    case 'ok':
    case 'refused':
      throw new TypeError(`a claim was answered ${answer.type}`);
  }
}

export function renewOne(table: WorkTable, request: RenewRequest): SettleAnswer {
  const by = { leaseId: request.leaseId, holder: request.holder };
  return settleOne(table, request.leaseId, { type: 'renew', now: table.now, by, ttlMs: request.ttlMs });
}

export function ackOne(table: WorkTable, request: AckRequest): SettleAnswer {
  const by = { leaseId: request.leaseId, holder: request.holder };
  return settleOne(table, request.leaseId, { type: 'ack', now: table.now, by, result: request.result });
}

export function releaseOne(table: WorkTable, request: ReleaseRequest): SettleAnswer {
  const by = { leaseId: request.leaseId, holder: request.holder };
  return settleOne(table, request.leaseId, { type: 'release', now: table.now, by, reason: request.reason });
}

/** The id of the item a lease belongs to, or null when it is no lease id of a ledger. */
export function itemOfLease(leaseId: string): number | null {
  const digits = /^(\d{1,15})-/.exec(leaseId)?.[1];
  return digits === undefined ? null : Number(digits);
}

function settleOne(table: WorkTable, leaseId: string, event: WorkEvent): SettleAnswer {
  const id = itemOfLease(leaseId);
  const item = id === null ? null : table.byId(id);
  return item === null ? { ok: false, reason: 'unknown' } : apply(table, item, event);
}

export function requeueOne(table: WorkTable, key: string): SettleAnswer {
  const item = table.byKey(key);
  return item === null
    ? { ok: false, reason: 'unknown' }
    : apply(table, item, { type: 'requeue', now: table.now });
}

export function dropOne(table: WorkTable, key: string): SettleAnswer {
  const item = table.byKey(key);
  return item === null
    ? { ok: false, reason: 'unknown' }
    : apply(table, item, { type: 'drop', now: table.now });
}

/** Lets the clock act on an item whose lease may have run out. */
export function tickOne(table: WorkTable, item: WorkItem): void {
  apply(table, item, { type: 'tick', now: table.now });
}

function apply(table: WorkTable, item: WorkItem, event: WorkEvent): SettleAnswer {
  const next = step(item.work, event);
  store(table, item, next);
  switch (next.answer.type) {
    case 'ok':
      return { ok: true, expiresInMs: next.answer.expiresInMs };
    case 'refused':
      return { ok: false, reason: next.answer.reason };
    case 'granted':
    case 'held':
      throw new TypeError(`${event.type} was answered ${next.answer.type}`);
  }
}

function store(table: WorkTable, item: WorkItem, next: Step): void {
  if (next.work !== item.work) table.save(item, next.work);
  for (const effect of next.effects) {
    if (effect.type === 'lease.expired') continue;
    const event = dependencyEvent(table, item, effect.type === 'dependents.release');
    for (const dependent of table.takeDependents(item.id)) {
      const after = step(dependent.work, event);
      if (after.work !== dependent.work) table.save(dependent, after.work);
    }
  }
}

function dependencyEvent(table: WorkTable, item: WorkItem, done: boolean): WorkEvent {
  return done
    ? { type: 'dependency.done', now: table.now }
    : { type: 'dependency.dropped', now: table.now, dependency: item.key };
}

export function submitOne(table: WorkTable, policy: LedgerPolicy, request: SubmitRequest): SubmitAnswer {
  const known = table.byKey(request.key);
  if (known !== null && known.work.state.at !== 'cancelled') {
    return { accepted: true, workId: request.key, created: false };
  }
  const unmet = new Set<number>();
  for (const key of request.dependsOn) {
    const other = table.byKey(key);
    if (other === null || other.work.state.at === 'cancelled')
      return { accepted: false, unknownDependency: key };
    if (other.work.state.at !== 'done') unmet.add(other.id);
  }
  if (known !== null) table.remove(known);
  const notBefore = table.now + request.delayMs;
  const { key, item, kind, tenant, priority } = request;
  const work = newWork({
    maxAttempts: request.maxAttempts ?? policy.maxAttempts,
    notBefore,
    waitingFor: unmet.size,
  });
  table.insert(
    {
      id: table.newId(),
      key,
      item,
      kind,
      tenant,
      priority,
      createdAt: table.now,
      enqueuedAt: notBefore,
      work,
    },
    [...unmet],
  );
  return { accepted: true, workId: key, created: true };
}

/** What may be told of an item. */
export function recordOf(item: WorkItem, now: number): WorkRecord {
  const { work } = item;
  return {
    workId: item.key,
    item: item.item,
    kind: item.kind,
    tenant: item.tenant,
    priority: item.priority,
    state: work.state.at,
    attempt: work.attempt,
    maxAttempts: work.maxAttempts,
    lastError: work.lastError,
    holder: holderOf(work),
    result: work.state.at === 'done' ? work.state.result : null,
    ageMs: Math.max(0, now - item.createdAt),
  };
}

function holderOf(work: Work): string | null {
  return work.state.at === 'leased' || work.state.at === 'done' ? work.state.holder : null;
}
