import {
  type ClaimAnswer,
  type ClaimedWork,
  DEFAULT_POLICY,
  type Grant,
  type Ledger,
  type LedgerPolicy,
  type SubmitAnswer,
  type SubmitRequest,
} from '../../../supervisor/coordination/ledger.ts';

/** What the suite needs of an adapter under test. */
export interface LedgerFixture {
  readonly ledger: Ledger;
  /** Opens the same database once more, as another process would. */
  again(): Promise<Ledger>;
  /** Moves the ledger's clock forward. */
  advance(ms: number): Promise<void>;
  /** Closes every ledger opened here and removes the database. */
  dispose(): Promise<void>;
}

export type OpenFixture = (policy: LedgerPolicy) => Promise<LedgerFixture>;

/** The lease time of the suite where it does not matter, ms. */
export const TTL = 30_000;

/** The ledger of the running test, and short forms of its calls. */
export class LedgerHarness {
  private current: LedgerFixture | null = null;
  private used: Ledger | null = null;

  constructor(private readonly open: OpenFixture) {}

  /** Starts with an empty ledger. */
  async start(policy: Partial<LedgerPolicy> = {}): Promise<void> {
    await this.dispose();
    this.current = await this.open({ ...DEFAULT_POLICY, ...policy });
    this.used = this.current.ledger;
  }

  async dispose(): Promise<void> {
    await this.current?.dispose();
    this.current = null;
  }

  get fixture(): LedgerFixture {
    if (this.current === null) throw new Error('no ledger was started');
    return this.current;
  }

  get ledger(): Ledger {
    return this.used ?? this.fixture.ledger;
  }

  /** Goes on with another connection. */
  set ledger(ledger: Ledger) {
    this.used = ledger;
  }

  claim(key: string, holder = 'a', ttlMs = TTL): Promise<ClaimAnswer> {
    return this.ledger.claim({ key, item: `item:${key}`, holder, ttlMs });
  }

  submit(key: string, more: Partial<SubmitRequest> = {}): Promise<SubmitAnswer> {
    return this.ledger.submit({
      key,
      item: `item:${key}`,
      kind: 'default',
      tenant: 'default',
      priority: 'normal',
      maxAttempts: null,
      delayMs: 0,
      dependsOn: [],
      ...more,
    });
  }

  next(
    holder = 'a',
    more: { readonly max?: number; readonly kinds?: string[]; readonly tenants?: string[] } = {},
  ): Promise<readonly ClaimedWork[]> {
    const { max = 1, kinds = null, tenants = null } = more;
    return this.ledger.claimNext({ holder, ttlMs: TTL, max, kinds, tenants });
  }

  async nextKey(): Promise<string | null> {
    return (await this.next())[0]?.workId ?? null;
  }

  async state(key: string): Promise<string | null> {
    return (await this.ledger.find(key))?.state ?? null;
  }
}

/** A granted claim, or a failure that shows the answer. */
export function granted(answer: ClaimAnswer): Grant {
  if (!answer.granted) throw new Error(`not granted: held by ${answer.heldBy}`);
  return answer;
}

/** What a holder shows to settle. */
export function hold(
  holder: string,
  grant: { readonly leaseId: string },
): { readonly leaseId: string; readonly holder: string } {
  return { leaseId: grant.leaseId, holder };
}

/** Mulberry32: whole numbers from 0 below a bound, the same on every run. */
export function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}
