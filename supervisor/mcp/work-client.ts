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
import type { CallResult, Peers } from './peers.ts';

/** Who asks about which claim: what goes into `_meta`, exactly (contract, section 9). */
export interface WorkIdentity {
  readonly claimKey: string;
  /** `K/N`; null when unsharded, and then absent from `_meta`. */
  readonly shard: string | null;
  readonly traceparent: string;
}

/** The ledger could not be asked, or its answer is unusable. Nothing follows about the lease. */
export interface Failed {
  readonly kind: 'failed';
  readonly error: string;
}

export type ClaimOutcome =
  | {
      readonly kind: 'granted';
      readonly leaseId: string;
      readonly expiresInMs: number;
      readonly fencingToken: number | null;
      readonly attempt: number | null;
    }
  | { readonly kind: 'lost'; readonly heldBy: string }
  | Failed;

export type RenewOutcome =
  | { readonly kind: 'granted'; readonly expiresInMs: number | null }
  /** The lease is definitely no longer ours. */
  | { readonly kind: 'refused' }
  | Failed;

export type SettleOutcome = { readonly kind: 'granted' } | { readonly kind: 'refused' } | Failed;

export type NextLease = z.infer<typeof claimNextResult>['leases'][number];
export type ClaimNextOutcome = { readonly kind: 'granted'; readonly leases: readonly NextLease[] } | Failed;

export interface WorkClientOptions {
  readonly peers: Peers;
  readonly instance: string;
  /** Deadline of each call, ms. Default 5 s; renewals should pass less than their lease has left. */
  readonly timeoutMs?: number;
}

/** Per-call settings. */
export interface WorkCall extends WorkIdentity {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * The work.* tools of a coordination server, typed. No method rejects: a transport failure, an
 * `isError` result and an answer of the wrong shape are all `failed`, never a grant.
 */
export class WorkClient {
  constructor(private readonly options: WorkClientOptions) {}

  async claim(
    server: string,
    call: WorkCall & { readonly item: string; readonly ttlMs: number },
  ): Promise<ClaimOutcome> {
    const args = { item: call.item, ttl_ms: call.ttlMs };
    const answer = await this.call(server, 'work.claim', args, call, claimResult);
    if (answer.kind === 'failed') return answer;
    const { value } = answer;
    if (!value.granted) return { kind: 'lost', heldBy: value.held_by };
    return {
      kind: 'granted',
      leaseId: value.lease_id,
      expiresInMs: value.expires_in_ms,
      fencingToken: value.fencing_token ?? null,
      attempt: value.attempt ?? null,
    };
  }

  async renew(
    server: string,
    call: WorkCall & { readonly leaseId: string; readonly ttlMs: number },
  ): Promise<RenewOutcome> {
    const args = { lease_id: call.leaseId, ttl_ms: call.ttlMs };
    const answer = await this.call(server, 'work.renew', args, call, renewResult);
    if (answer.kind === 'failed') return answer;
    if (!answer.value.ok) return { kind: 'refused' };
    return { kind: 'granted', expiresInMs: answer.value.expires_in_ms ?? null };
  }

  async ack(
    server: string,
    call: WorkCall & { readonly leaseId: string; readonly result?: unknown },
  ): Promise<SettleOutcome> {
    const args = { lease_id: call.leaseId, ...(call.result === undefined ? {} : { result: call.result }) };
    const answer = await this.call(server, 'work.ack', args, call, ackResult);
    return answer.kind === 'failed' ? answer : { kind: answer.value.ok ? 'granted' : 'refused' };
  }

  async release(
    server: string,
    call: WorkCall & { readonly leaseId: string; readonly reason: string },
  ): Promise<SettleOutcome> {
    const args = { lease_id: call.leaseId, reason: call.reason };
    const answer = await this.call(server, 'work.release', args, call, releaseResult);
    return answer.kind === 'failed' ? answer : { kind: answer.value.ok ? 'granted' : 'refused' };
  }

  /** Pull-style claiming, for activation workers. */
  async claimNext(
    server: string,
    call: Omit<WorkCall, 'claimKey'> & {
      readonly ttlMs: number;
      readonly kinds?: readonly string[];
      readonly tenants?: readonly string[];
      readonly max?: number;
    },
  ): Promise<ClaimNextOutcome> {
    const args = {
      ttl_ms: call.ttlMs,
      ...(call.kinds === undefined ? {} : { kinds: call.kinds }),
      ...(call.tenants === undefined ? {} : { tenants: call.tenants }),
      ...(call.max === undefined ? {} : { max: call.max }),
    };
    const answer = await this.call(
      server,
      'work.claim_next',
      args,
      { ...call, claimKey: null },
      claimNextResult,
    );
    return answer.kind === 'failed' ? answer : { kind: 'granted', leases: answer.value.leases };
  }

  private async call<T extends z.ZodType>(
    server: string,
    tool: string,
    args: Record<string, unknown>,
    call: Omit<WorkCall, 'claimKey'> & { readonly claimKey: string | null },
    schema: T,
  ): Promise<{ readonly kind: 'answered'; readonly value: z.infer<T> } | Failed> {
    const peer = this.options.peers.get(server);
    if (peer === undefined) return failed(tool, `no MCP server is named ${server}`);
    let result: CallResult;
    try {
      result = await peer.callTool(tool, args, {
        timeoutMs: call.timeoutMs ?? this.options.timeoutMs ?? 5_000,
        meta: this.meta(call),
        ...(call.signal === undefined ? {} : { signal: call.signal }),
      });
    } catch (error) {
      return failed(tool, errorMessage(error));
    }
    if (result.isError) return failed(tool, result.text.slice(0, 400) || 'the server reports an error');
    const parsed = schema.safeParse(payload(result));
    if (!parsed.success) return failed(tool, 'the answer does not have the shape of the contract');
    return { kind: 'answered', value: parsed.data };
  }

  private meta(call: {
    readonly claimKey: string | null;
    readonly shard: string | null;
    readonly traceparent: string;
  }): Record<string, string> {
    return {
      ...(call.claimKey === null ? {} : { [META.CLAIM_KEY]: call.claimKey }),
      [META.INSTANCE]: this.options.instance,
      ...(call.shard === null ? {} : { [META.SHARD]: call.shard }),
      [META.TRACEPARENT]: call.traceparent,
    };
  }
}

/** The structured content, or else the text read as JSON, for servers that only send text. */
function payload(result: CallResult): unknown {
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
