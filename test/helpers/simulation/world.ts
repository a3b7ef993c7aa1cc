import type { RunSpec, StopCause } from '../../../supervisor/children/run.ts';
import { ledgerCalls } from './calls.ts';
import { Machine } from './machine.ts';
import { Random, Scheduler } from './scheduler.ts';
import { type LedgerCall, SimulatedLedger } from './simulated-ledger.ts';
import { SimulatedSupervisor } from './simulated-supervisor.ts';
import type { Wire } from './wire.ts';

/** What a seed came to. */
export interface Verdict {
  readonly violations: readonly string[];
  readonly events: number;
  readonly crashes: number;
  readonly runs: number;
  /** What reached the ledger, for running the same history against another. */
  readonly history: readonly LedgerCall[];
}

const TTL_MS = 1_000;
const CHAOS_MS = 15_000;
const CALM_MS = 120_000;

interface Process {
  readonly name: string;
  readonly supervisor: SimulatedSupervisor;
  readonly machine: Machine;
  readonly children: Map<string, { readonly uri: string; end: number; cause: StopCause | null }>;
  alive: boolean;
  /** Frozen (SIGSTOP) until this time; nothing of its own happens before. */
  frozenUntil: number;
  wakeAt: number;
}

/**
 * K supervisors' gates and one ledger in virtual time, with crashes, freezes, drains, delayed, lost
 * and duplicated calls, machines that start no children for a while, and clocks that run at different
 * speeds; all of it from one seed.
 */
export function simulate(seed: number): Verdict {
  return new World(seed).run();
}

class World {
  private readonly random: Random;
  private readonly scheduler = new Scheduler();
  private readonly violations: string[] = [];
  private readonly ledger: SimulatedLedger;
  private readonly slots: (Process | null)[];
  private readonly uris: string[];
  private readonly sharded: boolean;
  /** URI → processes whose child works on it now. */
  private readonly working = new Map<string, Set<Process>>();
  private chaos = true;
  private crashes = 0;
  private runs = 0;
  private events = 0;
  private names = 0;

  constructor(seed: number) {
    this.random = new Random(seed);
    this.ledger = new SimulatedLedger(
      () => this.scheduler.now,
      1_000,
      (what) => this.violate(what),
    );
    const count = this.random.integer(1, 4);
    this.sharded = this.random.chance(0.3);
    this.slots = Array.from({ length: count }, () => null);
    this.uris = Array.from({ length: this.random.integer(1, 5) }, (_, index) => `test:///${index}`);
  }

  run(): Verdict {
    for (const slot of this.slots.keys())
      this.scheduler.schedule(this.random.between(0, 500), () => this.start(slot));
    for (let index = this.random.integer(0, 10); index > 0; index--) {
      const uri = this.uris[this.random.integer(0, this.uris.length - 1)] ?? '';
      // A notification reaches everybody, some twice and some never.
      this.scheduler.schedule(this.random.between(0, CHAOS_MS), () => {
        for (const process of this.slots) {
          if (process !== null && !this.random.chance(0.1))
            this.act(process, () => process.supervisor.hear(uri));
        }
      });
    }
    this.scheduleTrouble();
    this.scheduler.schedule(CHAOS_MS, () => {
      this.chaos = false;
    });
    const done = (): boolean => !this.chaos && this.ledger.settled === this.uris.length && this.idle();
    if (!this.scheduler.runUntil(CHAOS_MS + CALM_MS, done)) {
      this.violate(
        `not finished: ${this.ledger.settled} of ${this.uris.length} items settled (something was lost)`,
      );
    }
    this.scheduler.now += 10 * TTL_MS;
    this.ledger.tick();
    for (const lease of this.ledger.granted) {
      if (!this.ledger.fates.has(lease)) this.violate(`lease ${lease} never ended (invariant 3)`);
    }
    for (const [key, acks] of this.ledger.acks)
      if (acks !== 1) this.violate(`${key} was settled ${acks} times (invariant 2)`);
    const { violations, events, crashes, runs, ledger } = this;
    return { violations, events, crashes, runs, history: ledger.history };
  }

  private violate(what: string): void {
    this.violations.push(`at ${Math.round(this.scheduler.now)} ms: ${what}`);
  }

  private idle(): boolean {
    return this.slots.every((process) => process === null || process.children.size === 0);
  }

  private scheduleTrouble(): void {
    const troubles = this.random.integer(0, 12);
    for (let index = 0; index < troubles; index++) {
      const slot = this.random.integer(0, this.slots.length - 1);
      this.scheduler.schedule(this.random.between(0, CHAOS_MS), () => {
        const process = this.slots[slot] ?? null;
        if (process === null) return;
        const kind = this.random.next();
        if (kind < 0.5) this.crash(slot, process);
        else if (kind < 0.65) process.machine.break(this.random.between(10, 4 * TTL_MS));
        else if (kind < 0.8) process.frozenUntil = this.scheduler.now + this.random.between(10, 4 * TTL_MS);
        else this.drain(slot, process);
      });
    }
  }

  private start(slot: number): void {
    const name = `s${slot}#${this.names++}`;
    const origin = this.random.between(0, 1e9);
    // Clocks agree on neither the time nor, quite, the length of a second.
    const rate = this.random.between(0.97, 1.03);
    const clock = { now: () => origin + this.scheduler.now * rate, wall: () => 0 };
    const children: Process['children'] = new Map();
    const shard = this.sharded ? { index: slot, count: this.slots.length } : { index: 0, count: 1 };
    const supervisor = new SimulatedSupervisor(
      clock,
      { ttlMs: TTL_MS, shard },
      ledgerCalls(this.ledger, {
        name,
        wire: () => this.wire(process),
        received: (key) => this.received.add(`${name} ${key}`),
      }),
      {
        launch: (spec) => this.launch(process, spec),
        stop: (runId, cause, withinMs) => this.stop(process, runId, cause, withinMs),
        get active() {
          return children.size;
        },
        get canStart() {
          return machine.canStart;
        },
      },
      () => this.random.next(),
      (uri) => {
        if (!machine.canStart) this.violate(`${name} claimed ${uri} while it could start no child`);
      },
    );
    const machine = new Machine(this.scheduler, () => this.act(process, () => supervisor.wake()));
    const process: Process = {
      name,
      supervisor,
      machine,
      children,
      alive: true,
      frozenUntil: 0,
      wakeAt: Number.POSITIVE_INFINITY,
    };
    this.slots[slot] = process;
    toReal.set(process, (at) => (at - origin) / rate);
    // Read after subscribe: everything may have changed.
    this.act(process, () => {
      for (const uri of this.uris) supervisor.hear(uri);
    });
  }

  /** Lets a process do something, later if it is frozen, never if it has died. */
  private act(process: Process, what: () => void): void {
    if (!process.alive) return;
    if (process.frozenUntil > this.scheduler.now) {
      this.scheduler.schedule(process.frozenUntil, () => this.act(process, what));
      return;
    }
    this.events++;
    what();
    this.planWake(process);
  }

  private planWake(process: Process): void {
    const due = process.supervisor.nextDue();
    if (due === null) return;
    const at = Math.max(this.scheduler.now, toReal.get(process)?.(due) ?? 0) + 0.001;
    if (at >= process.wakeAt && process.wakeAt > this.scheduler.now) return;
    process.wakeAt = at;
    this.scheduler.schedule(at, () => {
      if (process.wakeAt !== at) return;
      process.wakeAt = Number.POSITIVE_INFINITY;
      this.act(process, () => process.supervisor.wake());
    });
  }

  private crash(slot: number, process: Process): void {
    this.crashes++;
    process.alive = false;
    // No child outlives its supervisor (invariant 6).
    for (const child of process.children.values()) this.working.get(child.uri)?.delete(process);
    process.children.clear();
    this.slots[slot] = null;
    this.scheduler.schedule(this.scheduler.now + this.random.between(10, 3_000), () => this.start(slot));
  }

  private drain(slot: number, process: Process): void {
    if (process.supervisor.draining) return;
    this.act(process, () => process.supervisor.drain());
    for (const runId of process.children.keys()) this.stop(process, runId, 'drain', 500);
    this.scheduler.schedule(this.scheduler.now + 1_500, () => {
      if (this.slots[slot] === process) this.crash(slot, process);
    });
  }

  private launch(process: Process, spec: RunSpec): void {
    this.runs++;
    const uri = spec.event?.uri ?? '';
    if (process.supervisor.draining)
      this.violate(`${process.name} started ${uri} while draining (invariant 4)`);
    if (!this.received.has(`${process.name} ${spec.runId}`)) {
      this.violate(`${process.name} started ${uri} without a claim (invariant 1)`);
    }
    const { machine, children } = process;
    if (!machine.start()) {
      children.set(spec.runId, { uri, end: 0, cause: 'not_ready' });
      const gone = this.scheduler.now + this.random.between(1, 100);
      this.scheduler.schedule(gone, () => this.endChild(process, spec.runId, 'crashed'));
      return;
    }
    this.beginWork(process, uri);
    const end = this.scheduler.now + this.random.between(5, 2.5 * TTL_MS);
    children.set(spec.runId, { uri, end, cause: null });
    this.scheduler.schedule(end, () =>
      this.endChild(process, spec.runId, this.random.chance(0.9) ? 'completed' : 'crashed'),
    );
  }

  private beginWork(process: Process, uri: string): void {
    const others = this.working.get(uri) ?? new Set();
    this.working.set(uri, others);
    for (const other of others) {
      // A frozen supervisor cannot stop its child; its ack is fenced off instead.
      if (other.frozenUntil + TTL_MS < this.scheduler.now) {
        this.violate(`${process.name} and ${other.name} work on ${uri} at once`);
      }
    }
    others.add(process);
  }

  private stop(process: Process, runId: string, cause: StopCause, withinMs: number | undefined): void {
    const child = process.children.get(runId);
    if (child === undefined) return;
    child.cause ??= cause;
    // A second, shorter stop tightens the first; a later end finds the child gone.
    const at = this.scheduler.now + this.random.between(0, (withinMs ?? 500) * 0.95);
    this.scheduler.schedule(at, () => this.endChild(process, runId, 'cancelled'));
  }

  private endChild(process: Process, runId: string, status: 'completed' | 'crashed' | 'cancelled'): void {
    const child = process.children.get(runId);
    if (child === undefined || !process.alive) return;
    process.children.delete(runId);
    this.working.get(child.uri)?.delete(process);
    this.act(process, () => process.supervisor.settled(runId, { status, cause: child.cause }));
  }

  /** Grants whose reply has reached the process. */
  private readonly received = new Set<string>();

  /** The network between a process and the ledger. */
  private wire(process: Process): Wire {
    const { random, scheduler } = this;
    return {
      random,
      scheduler,
      bad: () => this.chaos,
      ttlMs: TTL_MS,
      arrive: (what) => this.act(process, what),
    };
  }
}

const toReal = new WeakMap<Process, (at: number) => number>();
