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

/** `_meta` keys on every work.* call and every downstream call of a claimed run. */
export const META = {
  CLAIM_KEY: 'agent/claim_key',
  INSTANCE: 'agent/instance',
  SHARD: 'agent/shard',
  RUN_ID: 'agent/run_id',
  IDEMPOTENCY_KEY: 'agent/idempotency_key',
  TRACEPARENT: 'traceparent',
} as const;

const ttl = z.number().int().min(1).max(86_400_000).describe('lease time to live, ms');

export const claimArguments = z.object({ item: z.string().min(1), ttl_ms: ttl });
export const claimResult = z.discriminatedUnion('granted', [
  z.looseObject({
    granted: z.literal(true),
    lease_id: z.string().min(1),
    expires_in_ms: z.number(),
    fencing_token: z.number().optional(),
    /** The attempt this grant begins, 1 for the first; only our own server says so. */
    attempt: z.number().optional(),
  }),
  z.looseObject({ granted: z.literal(false), held_by: z.string() }),
]);

export const renewArguments = z.object({ lease_id: z.string().min(1), ttl_ms: ttl });
export const renewResult = z.looseObject({ ok: z.boolean(), expires_in_ms: z.number().optional() });

export const ackArguments = z.object({ lease_id: z.string().min(1), result: z.unknown().optional() });
export const ackResult = z.looseObject({ ok: z.boolean() });

export const releaseArguments = z.object({ lease_id: z.string().min(1), reason: z.string() });
export const releaseResult = z.looseObject({ ok: z.boolean() });

export const PRIORITIES = ['high', 'normal', 'low'] as const;

export const submitArguments = z.object({
  item: z.string().min(1),
  claim_key: z.string().min(1).optional(),
  kind: z.string().min(1).optional(),
  tenant: z.string().min(1).optional(),
  priority: z.enum(PRIORITIES).optional(),
  max_attempts: z.number().int().min(1).max(1000).optional(),
  delay_ms: z.number().int().min(0).optional(),
  /** Work ids that must be done before this one becomes ready. */
  depends_on: z.array(z.string().min(1)).max(256).optional(),
});
export const submitResult = z.looseObject({ work_id: z.string(), created: z.boolean() });

export const statsResult = z.looseObject({
  pending: z.number(),
  claimed: z.number(),
  oldest_age_ms: z.number(),
  deadletter: z.number(),
});

export const resultArguments = z.object({ work_id: z.string().min(1) });

export const deadLetterArguments = z.object({
  action: z.enum(['list', 'requeue', 'drop']),
  work_id: z.string().min(1).optional(),
});

export const claimNextArguments = z.object({
  kinds: z.array(z.string().min(1)).optional(),
  tenants: z.array(z.string().min(1)).optional(),
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

export type ClaimResult = z.infer<typeof claimResult>;
