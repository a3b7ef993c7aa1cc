import type { z } from 'zod';
import { errorMessage } from '../../protocol/errors.ts';
import {
  ackResult,
  claimNextResult,
  claimResult,
  META,
  releaseResult,
  renewResult,
} from '../../protocol/work-tools.ts';
import type { ClaimReply, ClaimTarget, LeaseCalls, LeaseReply } from '../gates/lease-keeper.ts';
import type { CallResult, Peers } from './peers.ts';

/** Which call it is about, for the address and for `_meta`. */
interface About {
  readonly server: string;
  readonly claimKey: string | null;
  readonly traceparent: string;
}

type Failed = { readonly kind: 'failed'; readonly error: string };

export type NextLease = z.infer<typeof claimNextResult>['leases'][number];
export type ClaimNextReply = { readonly kind: 'granted'; readonly leases: readonly NextLease[] } | Failed;

export interface WorkClientOptions {
  readonly peers: Peers;
  readonly instance: string;
  /** `K/N`; null when unsharded, and then absent from `_meta`. */
  readonly shard: string | null;
}

/**
 * The work.* tools of a coordination server, typed. No method rejects: a transport failure, an
 * `isError` result and an answer of the wrong shape are all `failed`, never a grant and never a
 * refusal. `_meta` is what section 9 of the contract lists, and nothing else.
 */
export class WorkClient implements LeaseCalls {
  constructor(private readonly options: WorkClientOptions) {}

  async claim(target: ClaimTarget, deadlineMs: number): Promise<ClaimReply> {
    const args = { item: target.item, ttl_ms: target.ttlMs };
    const answer = await this.call(target, 'work.claim', args, deadlineMs, claimResult);
    if (answer.kind === 'failed') return answer;
    const { value } = answer;
    if (!value.granted) {
      return { kind: 'lost', heldBy: value.held_by, retryAfterMs: value.retry_after_ms };
    }
    return {
      kind: 'granted',
      leaseId: value.lease_id,
      expiresInMs: value.expires_in_ms,
      fencingToken: value.fencing_token ?? null,
    };
  }

  async renew(target: ClaimTarget, leaseId: string, deadlineMs: number): Promise<LeaseReply> {
    const args = { lease_id: leaseId, ttl_ms: target.ttlMs };
    const answer = await this.call(target, 'work.renew', args, deadlineMs, renewResult);
    if (answer.kind === 'failed') return answer;
    if (!answer.value.ok) return { kind: 'refused' };
    const expiresInMs = answer.value.expires_in_ms;
    return expiresInMs === undefined ? { kind: 'ok' } : { kind: 'ok', expiresInMs };
  }

  async ack(target: ClaimTarget, leaseId: string, result: string, deadlineMs: number): Promise<LeaseReply> {
    return this.settle(target, 'work.ack', { lease_id: leaseId, result }, deadlineMs, ackResult);
  }

  async release(
    target: ClaimTarget,
    leaseId: string,
    reason: string,
    deadlineMs: number,
  ): Promise<LeaseReply> {
    return this.settle(target, 'work.release', { lease_id: leaseId, reason }, deadlineMs, releaseResult);
  }

  /** Pull-style claiming: takes up to `max` ready items, whatever they are. */
  async claimNext(
    server: string,
    request: {
      readonly ttlMs: number;
      readonly kinds?: readonly string[];
      readonly tenants?: readonly string[];
      readonly max?: number;
      readonly traceparent: string;
    },
    deadlineMs: number,
  ): Promise<ClaimNextReply> {
    const { ttlMs, kinds, tenants, max, traceparent } = request;
    const args = {
      ttl_ms: ttlMs,
      ...(kinds === undefined ? {} : { kinds }),
      ...(tenants === undefined ? {} : { tenants }),
      ...(max === undefined ? {} : { max }),
    };
    const about = { server, claimKey: null, traceparent };
    const answer = await this.call(about, 'work.claim_next', args, deadlineMs, claimNextResult);
    return answer.kind === 'failed' ? answer : { kind: 'granted', leases: answer.value.leases };
  }

  private async settle(
    target: ClaimTarget,
    tool: string,
    args: Record<string, unknown>,
    deadlineMs: number,
    schema: typeof ackResult,
  ): Promise<LeaseReply> {
    const answer = await this.call(target, tool, args, deadlineMs, schema);
    if (answer.kind === 'failed') return answer;
    return answer.value.ok ? { kind: 'ok' } : { kind: 'refused' };
  }

  private async call<T extends z.ZodType>(
    about: About,
    tool: string,
    args: Record<string, unknown>,
    deadlineMs: number,
    schema: T,
  ): Promise<{ readonly kind: 'answered'; readonly value: z.infer<T> } | Failed> {
    const peer = this.options.peers.get(about.server, about.claimKey ?? undefined);
    if (peer === undefined) return failed(tool, `no MCP server is named ${about.server}`);
    let result: CallResult;
    try {
      result = await peer.callTool(tool, args, { timeoutMs: deadlineMs, meta: this.meta(about) });
    } catch (error) {
      return failed(tool, errorMessage(error));
    }
    if (result.isError) return failed(tool, result.text.slice(0, 400) || 'the server reports an error');
    const parsed = schema.safeParse(payload(result));
    if (!parsed.success) return failed(tool, 'the answer does not have the shape of the contract');
    return { kind: 'answered', value: parsed.data };
  }

  private meta({ claimKey, traceparent }: About): Record<string, string> {
    const { instance, shard } = this.options;
    return {
      ...(claimKey === null ? {} : { [META.CLAIM_KEY]: claimKey }),
      [META.INSTANCE]: instance,
      ...(shard === null ? {} : { [META.SHARD]: shard }),
      [META.TRACEPARENT]: traceparent,
    };
  }
}

/** The structured content, or else the text read as JSON, for servers that only send text. */
export function payload(result: CallResult): unknown {
  if (result.structured !== undefined) return result.structured;
  try {
    return JSON.parse(result.text);
  } catch {
    return undefined;
  }
}

function failed(tool: string, reason: string): Failed {
  return { kind: 'failed', error: `${tool}: ${reason}` };
}
