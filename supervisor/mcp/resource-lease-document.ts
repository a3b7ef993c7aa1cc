import { z } from 'zod';

/** The lease a resource carries in its JSON body, and the answer of `lease.cas` (contract, section 9). */

/** Opaque to us: given back as it was read. */
const version = z.union([z.string(), z.number()]);
export type LeaseVersion = z.infer<typeof version>;

const lease = z.looseObject({
  holder: z.string(),
  version,
  /** RFC 3339, or milliseconds since the Unix epoch, by the clock of whoever wrote it. */
  expires_at: z.union([z.string(), z.number()]).nullish(),
  /** What the server says is left, ms. */
  expires_in_ms: z.number().nullish(),
  /** On an acked lease: the grant that acked it. */
  acked_by: z.string().nullish(),
});
export type ResourceLease = z.infer<typeof lease>;

const body = z.looseObject({ lease: lease.nullish() });

export const casResult = z.looseObject({
  ok: z.boolean(),
  /** Of the lease as it is now; a free resource has none. */
  version: version.nullish(),
  /** What the server grants, where that is not what was asked for, ms. */
  expires_in_ms: z.number().nullish(),
});

/** The lease in a resource's body; null when it is free, `unreadable` when the body says nothing usable. */
export function leaseIn(text: string): ResourceLease | null | 'unreadable' {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return 'unreadable';
  }
  const found = body.safeParse(parsed);
  return found.success ? (found.data.lease ?? null) : 'unreadable';
}

/** What a lease states to be left of it, ms; null when it states no end. Ours is the clock that is asked. */
export function statedRemaining(found: ResourceLease, wallMs: number): number | null {
  if (typeof found.expires_in_ms === 'number') return found.expires_in_ms;
  const at = found.expires_at;
  if (at === undefined || at === null) return null;
  const end = typeof at === 'number' ? at : Date.parse(at);
  return Number.isNaN(end) ? null : end - wallMs;
}
