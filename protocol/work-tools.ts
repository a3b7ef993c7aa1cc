import { z } from 'zod';

/**
 * The work.* tools (contract, section 9): what a coordination server serves and a supervisor
 * calls. Results are read loosely (unknown keys pass) because the server may be somebody else's.
 */

export const WORK_PENDING_URI = 'work://pending';
/** The least a coordination server must list to be usable on a claim route. */
export const REQUIRED_WORK_TOOLS = ['work.claim', 'work.ack'] as const;

/** `held_by` of an item that is already done. */
export const HELD_BY_ACKED = '<acked>';
/** `held_by` of an item that has been given up. */
export const HELD_BY_DEAD_LETTER = '<deadletter>';
/** `held_by` of an item that may not start yet: delayed, or waiting for others. Ask again later. */
export const HELD_BY_WAITING = '<waiting>';
/** `held_by` of an item whose tenant holds as many leases as it may. Ask again later. */
export const HELD_BY_QUOTA = '<quota>';

/**
 * Release reasons that say the item itself did not fail, so no attempt is consumed. The reason's
 * first word counts: `drain`, or `budget: tokens_lifetime`.
 */
export const RELEASES_WITHOUT_ATTEMPT = ['drain', 'shutdown', 'not_started', 'budget', 'capacity'] as const;

/** Whether a release with this reason leaves the attempt unconsumed. */
export function releaseKeepsAttempt(reason: string): boolean {
  const word = /^[a-z_]*/.exec(reason)?.[0] ?? '';
  return (RELEASES_WITHOUT_ATTEMPT as readonly string[]).includes(word);
}

/** `_meta` keys on every work.* call and every downstream call of a claimed run. */
export const META = {
  CLAIM_KEY: 'agent/claim_key',
  INSTANCE: 'agent/instance',
  SHARD: 'agent/shard',
  RUN_ID: 'agent/run_id',
  IDEMPOTENCY_KEY: 'agent/idempotency_key',
  TRACEPARENT: 'traceparent',
} as const;

// No database keeps the NUL character in text.
const NO_NUL = /^[^\0]*$/;
const item = z
  .string()
  .min(1)
  .max(8192)
  .regex(NO_NUL)
  .describe('what the work is about, normally a resource URI');
const workId = z.string().min(1).max(512).regex(NO_NUL).describe('the claim key of the item');
const label = z.string().min(1).max(128).regex(NO_NUL);
const ttl = z.number().int().min(1).max(86_400_000).describe('lease time to live, ms');

export const claimArguments = z.object({ item, ttl_ms: ttl });
export const claimResult = z.discriminatedUnion('granted', [
  z.looseObject({
    granted: z.literal(true),
    lease_id: z.string().min(1),
    expires_in_ms: z.number(),
    fencing_token: z.number().optional(),
    /** The attempt this grant begins, 1 for the first; only our own server says so. */
    attempt: z.number().optional(),
  }),
  z.looseObject({
    granted: z.literal(false),
    held_by: z.string(),
    /** When another try could succeed, ms; only our own server says so. */
    retry_after_ms: z.number().optional().catch(undefined),
  }),
]);

export const renewArguments = z.object({ lease_id: z.string().min(1), ttl_ms: ttl });
export const renewResult = z.looseObject({
  ok: z.boolean(),
  expires_in_ms: z.number().optional(),
  /** Why it was refused; only our own server says so. */
  reason: z.string().optional(),
});

export const ackArguments = z.object({ lease_id: z.string().min(1), result: z.unknown().optional() });
export const ackResult = z.looseObject({ ok: z.boolean(), reason: z.string().optional() });

export const releaseArguments = z.object({
  lease_id: z.string().min(1),
  reason: z.string().max(4096).regex(NO_NUL),
});
export const releaseResult = z.looseObject({ ok: z.boolean(), reason: z.string().optional() });

export const PRIORITIES = ['high', 'normal', 'low'] as const;

export const submitArguments = z.object({
  item,
  claim_key: workId.optional(),
  kind: label.optional(),
  tenant: label.optional(),
  priority: z.enum(PRIORITIES).optional(),
  max_attempts: z.number().int().min(1).max(1000).optional(),
  delay_ms: z.number().int().min(0).max(31_536_000_000).optional(),
  /** Work ids that must be done before this one becomes ready. */
  depends_on: z.array(workId).max(256).optional(),
});
export const submitResult = z.looseObject({ work_id: z.string(), created: z.boolean() });

export const statsArguments = z.object({});
export const statsResult = z.looseObject({
  pending: z.number(),
  claimed: z.number(),
  oldest_age_ms: z.number(),
  deadletter: z.number(),
});

export const resultArguments = z.object({ work_id: workId });

/** An item as work.result, work.list and work.deadletter tell it. */
export const workRecord = z.looseObject({
  work_id: z.string(),
  item: z.string(),
  kind: z.string(),
  tenant: z.string(),
  priority: z.enum(PRIORITIES),
  state: z.string(),
  attempt: z.number(),
  max_attempts: z.number(),
  age_ms: z.number(),
  last_error: z.string().optional(),
  held_by: z.string().optional(),
  result: z.unknown().optional(),
});
export const resultResult = z.union([
  workRecord.extend({ found: z.literal(true) }),
  z.looseObject({ found: z.literal(false), work_id: z.string() }),
]);

export const deadLetterArguments = z.object({
  action: z.enum(['list', 'requeue', 'drop']),
  work_id: workId.optional(),
  limit: z.number().int().min(1).max(1000).optional(),
  /** `next` of the previous page. */
  after: z.number().int().min(0).optional(),
});
export const deadLetterResult = z.looseObject({ ok: z.boolean(), reason: z.string().optional() });

/** work.list, beyond the contract's set: one page of items, oldest first. */
export const listArguments = z.object({
  state: z.enum(['submitted', 'ready', 'leased', 'done', 'dead_letter', 'cancelled']).optional(),
  limit: z.number().int().min(1).max(1000).optional(),
  after: z.number().int().min(0).optional(),
});
export const listResult = z.looseObject({ items: z.array(workRecord), next: z.number().optional() });

export const claimNextArguments = z.object({
  kinds: z.array(label).max(256).optional(),
  tenants: z.array(label).max(256).optional(),
  ttl_ms: ttl,
  max: z.number().int().min(1).max(256).optional(),
});
export const claimNextResult = z.looseObject({
  leases: z.array(
    z.looseObject({
      work_id: z.string(),
      item: z.string(),
      claim_key: z.string(),
      lease_id: z.string(),
      expires_in_ms: z.number(),
      fencing_token: z.number(),
      attempt: z.number(),
    }),
  ),
});
