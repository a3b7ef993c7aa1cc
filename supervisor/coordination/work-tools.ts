import { AgentdError } from '../../protocol/errors.ts';
import {
  ackArguments,
  claimArguments,
  claimNextArguments,
  deadLetterArguments,
  listArguments,
  releaseArguments,
  renewArguments,
  resultArguments,
  statsArguments,
  submitArguments,
} from '../../protocol/work-tools.ts';
import type { ClaimAnswer, Ledger, LedgerStats, SettleAnswer, WorkRecord } from './ledger.ts';
import { DEFAULT_KIND, DEFAULT_TENANT } from './work-operations.ts';
import { type BoundTool, keyOf, type ToolAnswer, workTool } from './work-tool.ts';

/** The tools of contract section 9, and work.list. Every lost claim is an ordinary result. */

/** Largest result an ack may carry, characters of JSON. */
const MAX_RESULT = 1024 * 1024;
const DEFAULT_PAGE = 100;

export const WORK_TOOLS: readonly BoundTool[] = [
  workTool({
    name: 'work.claim',
    description:
      'Ask for the sole right to work on an item for a time. Creates the item when it is new. ' +
      'The same instance asking again gets its own live lease back.',
    input: claimArguments,
    run: async (ledger, { item, ttl_ms }, { holder, claimKey }) => {
      const answer = await ledger.claim({ key: keyOf(claimKey, item), item, holder, ttlMs: ttl_ms });
      return { outcome: answer.granted ? 'ok' : 'lost', result: claimResult(answer) };
    },
  }),
  workTool({
    name: 'work.renew',
    description: 'Extend a live lease. ok:false means that it is lost: stop the work at once.',
    input: renewArguments,
    run: async (ledger, { lease_id, ttl_ms }, { holder }) =>
      settled(await ledger.renew({ leaseId: lease_id, holder, ttlMs: ttl_ms })),
  }),
  workTool({
    name: 'work.ack',
    description: 'Mark the item of a lease done, with an optional result. Repeating it changes nothing.',
    input: ackArguments,
    run: async (ledger, { lease_id, result }, { holder }) =>
      settled(await ledger.ack({ leaseId: lease_id, holder, result: resultText(result) })),
  }),
  workTool({
    name: 'work.release',
    description:
      'Give the item of a lease back; it is claimable again at once. A reason that begins with drain, ' +
      'shutdown, not_started, budget or capacity consumes no attempt.',
    input: releaseArguments,
    run: async (ledger, { lease_id, reason }, { holder }) =>
      settled(await ledger.release({ leaseId: lease_id, holder, reason })),
  }),
  workTool({
    name: 'work.submit',
    description: 'Add an item to be worked on. A key that is known already is left as it is.',
    input: submitArguments,
    run: async (ledger, args) => {
      const answer = await ledger.submit({
        key: keyOf(args.claim_key ?? null, args.item),
        item: args.item,
        kind: args.kind ?? DEFAULT_KIND,
        tenant: args.tenant ?? DEFAULT_TENANT,
        priority: args.priority ?? 'normal',
        maxAttempts: args.max_attempts ?? null,
        delayMs: args.delay_ms ?? 0,
        dependsOn: args.depends_on ?? [],
      });
      if (answer.accepted) {
        return { outcome: 'ok', result: { work_id: answer.workId, created: answer.created } };
      }
      throw new AgentdError(
        'WORK_ARGUMENTS_INVALID',
        `work.submit: depends_on names ${answer.unknownDependency}, which is not known here`,
        { remedy: 'Submit an item before the items that depend on it.' },
      );
    },
  }),
  workTool({
    name: 'work.stats',
    description: 'How much waits, is claimed, or has been given up.',
    input: statsArguments,
    run: async (ledger) => ({ outcome: 'ok', result: statsResult(await ledger.stats()) }),
  }),
  workTool({
    name: 'work.result',
    description: 'The state of one item and, once it is done, its result.',
    input: resultArguments,
    run: async (ledger, { work_id }) => {
      const record = await ledger.find(work_id);
      return {
        outcome: 'ok',
        result: record === null ? { found: false, work_id } : { found: true, ...recordResult(record) },
      };
    },
  }),
  workTool({
    name: 'work.list',
    description: 'Items in the order they were created, a page at a time.',
    input: listArguments,
    run: async (ledger, { state, limit, after }) =>
      page(ledger, { state: state ?? null, limit: limit ?? DEFAULT_PAGE, after: after ?? 0 }),
  }),
  workTool({
    name: 'work.deadletter',
    description:
      'Items given up. list: show them. requeue: try one again from the start. drop: cancel an item.',
    input: deadLetterArguments,
    run: async (ledger, { action, work_id, limit, after }) => {
      if (action === 'list') {
        return await page(ledger, { state: 'dead_letter', limit: limit ?? DEFAULT_PAGE, after: after ?? 0 });
      }
      if (work_id === undefined) {
        throw new AgentdError('WORK_ARGUMENTS_INVALID', `work.deadletter: ${action} needs work_id`);
      }
      return settled(action === 'requeue' ? await ledger.requeue(work_id) : await ledger.drop(work_id));
    },
  }),
  workTool({
    name: 'work.claim_next',
    description: 'Claim up to max items the server chooses, most urgent first, fairly between tenants.',
    input: claimNextArguments,
    run: async (ledger, { kinds, tenants, ttl_ms, max }, { holder }) => {
      const claimed = await ledger.claimNext({
        holder,
        ttlMs: ttl_ms,
        max: max ?? 1,
        kinds: kinds ?? null,
        tenants: tenants ?? null,
      });
      const leases = claimed.map((work) => ({
        work_id: work.workId,
        item: work.item,
        claim_key: work.workId,
        kind: work.kind,
        tenant: work.tenant,
        lease_id: work.leaseId,
        expires_in_ms: work.expiresInMs,
        fencing_token: work.fencingToken,
        attempt: work.attempt,
      }));
      return { outcome: leases.length > 0 ? 'ok' : 'lost', result: { leases } };
    },
  }),
];

function claimResult(answer: ClaimAnswer): Record<string, unknown> {
  if (answer.granted) {
    return {
      granted: true,
      lease_id: answer.leaseId,
      expires_in_ms: answer.expiresInMs,
      fencing_token: answer.fencingToken,
      attempt: answer.attempt,
    };
  }
  const retry = answer.retryAfterMs === null ? {} : { retry_after_ms: answer.retryAfterMs };
  return { granted: false, held_by: answer.heldBy, ...retry };
}

function settled(answer: SettleAnswer): ToolAnswer {
  if (!answer.ok) return { outcome: 'refused', result: { ok: false, reason: answer.reason } };
  const expires = answer.expiresInMs === null ? {} : { expires_in_ms: answer.expiresInMs };
  return { outcome: 'ok', result: { ok: true, ...expires } };
}

/** @throws AgentdError WORK_ARGUMENTS_INVALID */
function resultText(result: unknown): string | null {
  const text = result === undefined ? null : JSON.stringify(result);
  if (text === null || text.length <= MAX_RESULT) return text;
  throw new AgentdError(
    'WORK_ARGUMENTS_INVALID',
    `work.ack: the result is ${text.length} characters of JSON, more than ${MAX_RESULT}`,
    { remedy: 'Store a large result elsewhere and ack with a reference to it.' },
  );
}

export function statsResult(stats: LedgerStats): Record<string, number> {
  return {
    pending: stats.pending,
    claimed: stats.claimed,
    oldest_age_ms: stats.oldestAgeMs,
    deadletter: stats.deadLetter,
    done: stats.done,
  };
}

export function recordResult(record: WorkRecord): Record<string, unknown> {
  return {
    work_id: record.workId,
    item: record.item,
    kind: record.kind,
    tenant: record.tenant,
    priority: record.priority,
    state: record.state,
    attempt: record.attempt,
    max_attempts: record.maxAttempts,
    age_ms: record.ageMs,
    ...(record.lastError === null ? {} : { last_error: record.lastError }),
    ...(record.holder === null ? {} : { held_by: record.holder }),
    ...(record.result === null ? {} : { result: JSON.parse(record.result) as unknown }),
  };
}

async function page(ledger: Ledger, filter: Parameters<Ledger['list']>[0]): Promise<ToolAnswer> {
  const { records, next } = await ledger.list(filter);
  const more = next === null ? {} : { next };
  return { outcome: 'ok', result: { ok: true, items: records.map(recordResult), ...more } };
}
