import type { Refusal } from '../../../supervisor/coordination/ledger.ts';
import { newWork, step } from '../../../supervisor/coordination/work-machine.ts';
import type {
  Answer,
  Presented,
  Step,
  Work,
  WorkEvent,
} from '../../../supervisor/coordination/work-model.ts';

/** A ledger that is nothing but the work machine, a map and a clock, to hold adapters against. */
export class LedgerModel {
  now = 0;
  private grants = 0;
  private readonly items = new Map<string, Work>();
  /** Keys that wait, by the key they wait for. */
  private readonly dependents = new Map<string, string[]>();
  private readonly keyOfLease = new Map<string, string>();

  constructor(private readonly maxAttempts: number) {}

  claim(key: string, holder: string, ttlMs: number): Answer {
    const fresh = newWork({ maxAttempts: this.maxAttempts, notBefore: this.now, waitingFor: 0 });
    const lease = { leaseId: `model-${++this.grants}`, holder, fencing: this.grants };
    const answer = this.apply(key, this.items.get(key) ?? fresh, {
      type: 'claim',
      now: this.now,
      ttlMs,
      lease,
      overQuota: false,
    });
    if (answer.type === 'granted') this.keyOfLease.set(answer.lease.leaseId, key);
    return answer;
  }

  settle(type: 'renew' | 'ack' | 'release', by: Presented, more: string, ttlMs: number): Answer {
    const key = this.keyOfLease.get(by.leaseId) ?? '';
    const work = this.items.get(key);
    if (work === undefined) return refused('unknown');
    const now = this.now;
    const event: WorkEvent =
      type === 'renew'
        ? { type, now, by, ttlMs }
        : type === 'ack'
          ? { type, now, by, result: more }
          : { type, now, by, reason: more };
    return this.apply(key, work, event);
  }

  manage(type: 'requeue' | 'drop', key: string): Answer {
    const work = this.items.get(key);
    return work === undefined ? refused('unknown') : this.apply(key, work, { type, now: this.now });
  }

  /** Whether it was created; null when a dependency is not known. */
  submit(key: string, delayMs: number, dependsOn: readonly string[]): boolean | null {
    const known = this.items.get(key);
    if (known !== undefined && known.state.at !== 'cancelled') return false;
    const states = dependsOn.map((other) => this.items.get(other)?.state.at ?? 'cancelled');
    if (states.includes('cancelled')) return null;
    const unmet = [...new Set(dependsOn)].filter((other) => this.items.get(other)?.state.at !== 'done');
    // A lease of the item that was dropped is a lease of nothing.
    for (const [lease, owner] of this.keyOfLease) if (owner === key) this.keyOfLease.delete(lease);
    for (const [on, waiting] of this.dependents)
      this.dependents.set(
        on,
        waiting.filter((each) => each !== key),
      );
    for (const other of unmet) this.dependents.set(other, [...(this.dependents.get(other) ?? []), key]);
    const notBefore = this.now + delayMs;
    this.items.set(key, newWork({ maxAttempts: this.maxAttempts, notBefore, waitingFor: unmet.length }));
    return true;
  }

  /** Lets time act on everything. */
  tick(): void {
    for (const [key, work] of this.items) this.apply(key, work, { type: 'tick', now: this.now });
  }

  get states(): ReadonlyMap<string, Work> {
    return this.items;
  }

  private apply(key: string, work: Work, event: WorkEvent): Answer {
    const next: Step = step(work, event);
    this.items.set(key, next.work);
    for (const effect of next.effects) {
      if (effect.type === 'lease.expired') continue;
      const waiting = this.dependents.get(key) ?? [];
      this.dependents.delete(key);
      for (const other of waiting) {
        const dependent = this.items.get(other);
        if (dependent === undefined) continue;
        const happened: WorkEvent =
          effect.type === 'dependents.release'
            ? { type: 'dependency.done', now: this.now }
            : { type: 'dependency.dropped', now: this.now, dependency: key };
        this.items.set(other, step(dependent, happened).work);
      }
    }
    return next.answer;
  }
}

function refused(reason: Refusal): Answer {
  return { type: 'refused', reason };
}
