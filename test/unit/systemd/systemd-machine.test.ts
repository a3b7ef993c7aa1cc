import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  EXTEND_MS,
  NOTIFY_START,
  type NotifyEffect,
  type NotifyEvent,
  type NotifyState,
  type ServiceFacts,
  statusLine,
  stepNotify,
} from '../../../supervisor/lifecycle/systemd-machine.ts';

const WATCHDOG_MS = 30_000;
const IDLE: ServiceFacts = {
  phase: 'running',
  unready: [],
  paused: false,
  running: 0,
  backlog: 0,
  drainLeftMs: null,
};

/** Looks once a second at the given facts; what was told at each look. */
function lookAt(facts: readonly ServiceFacts[], watchdogMs: number | null = WATCHDOG_MS): NotifyEffect[][] {
  let state = NOTIFY_START;
  return facts.map((seen, second) => {
    const decision = stepNotify(state, { type: 'look', facts: seen }, second * 1_000, watchdogMs);
    state = decision.state;
    return [...decision.effects];
  });
}

const told = (effects: readonly NotifyEffect[]): string[] => effects.map(({ type }) => type);

describe('what the service manager is told', () => {
  it.each<[string, Partial<ServiceFacts>]>([
    ['starting: connecting to its servers', { phase: 'starting' }],
    ['ready, 3 running, backlog 12', { running: 3, backlog: 12 }],
    ['ready, paused, 0 running, backlog 2', { paused: true, backlog: 2 }],
    ['not ready (deaf to inbox), 1 running, backlog 0', { unready: ['deaf to inbox'], running: 1 }],
    ['draining, 2 running, backlog 5, at most 15 s left', drain(14_200, 2, 5)],
  ])('reads as "%s"', (line, facts) => {
    expect(statusLine({ ...IDLE, ...facts })).toBe(line);
  });

  it('is ready once, then only what has changed', () => {
    const starting: ServiceFacts = { ...IDLE, phase: 'starting' };
    const seen = lookAt([starting, starting, IDLE, IDLE, { ...IDLE, running: 1 }], null);
    expect(seen.map(told)).toEqual([['status'], [], ['ready'], [], ['status']]);
  });

  it('feeds the watchdog four times as often as asked, and not at all when nobody asks', () => {
    const facts = Array.from({ length: 61 }, () => IDLE);
    const fed = lookAt(facts).flatMap((effects, second) =>
      told(effects).includes('watchdog') ? [second] : [],
    );
    expect(fed).toEqual([0, 8, 16, 24, 32, 40, 48, 56]);
    expect(
      lookAt(facts, null)
        .flat()
        .map(({ type }) => type),
    ).not.toContain('watchdog');
  });

  it('extends the stop a little at a time for as long as the drain has budget', () => {
    const draining = (left: number): ServiceFacts => ({ ...IDLE, ...drain(left, 1, 0) });
    const seen = lookAt([IDLE, draining(60_000), draining(59_000), draining(1_000)], null).map((effects) =>
      effects.filter(({ type }) => type !== 'status'),
    );
    expect(seen.slice(1)).toEqual([
      [
        { type: 'stopping', status: expect.stringContaining('draining') },
        { type: 'extend', ms: EXTEND_MS },
      ],
      [{ type: 'extend', ms: EXTEND_MS }],
      [{ type: 'extend', ms: 6_000 }],
    ]);
  });

  it('ends a reload with the status of the moment', () => {
    const ready = step(NOTIFY_START, { type: 'look', facts: IDLE });
    const reloading = step(ready.state, { type: 'reload.begin' });
    expect(told(reloading.effects)).toEqual(['reloading']);
    const after = step(reloading.state, { type: 'reload.end', facts: { ...IDLE, backlog: 1 } });
    expect(after.effects).toEqual([{ type: 'ready', status: 'ready, 0 running, backlog 1' }]);
    expect(after.state.told).toBe('ready');
  });

  it('follows its table whatever comes: ready and stopping at most once, nothing but status after', () => {
    const phase = fc.constantFrom<ServiceFacts['phase']>('starting', 'running', 'draining');
    const facts = fc.record({ phase, running: fc.nat(9), backlog: fc.nat(9) }).map(
      (some): ServiceFacts => ({
        ...IDLE,
        ...some,
        drainLeftMs: some.phase === 'draining' ? 5_000 : null,
      }),
    );
    const event: fc.Arbitrary<NotifyEvent> = fc.oneof(
      facts.map((seen) => ({ type: 'look', facts: seen }) as const),
      fc.constant({ type: 'reload.begin' } as const),
      facts.map((seen) => ({ type: 'reload.end', facts: seen }) as const),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(event, fc.nat(20_000)), { maxLength: 40 }), (script) => {
        let state = NOTIFY_START;
        let now = 0;
        const all: string[] = [];
        for (const [next, wait] of script) {
          now += wait;
          const decision = stepNotify(state, next, now, WATCHDOG_MS);
          state = decision.state;
          all.push(...told(decision.effects));
        }
        const count = (type: string): number => all.filter((one) => one === type).length;
        expect(count('stopping')).toBeLessThanOrEqual(1);
        // Each ready but the first ends a reload.
        expect(count('ready')).toBeLessThanOrEqual(count('reloading') + 1);
        const afterStop = all.slice(all.indexOf('stopping') + 1);
        if (all.includes('stopping')) {
          expect(state.told).toBe('stopping');
          expect(afterStop).not.toContain('ready');
          expect(afterStop).not.toContain('reloading');
        }
        if (!all.includes('stopping')) expect(all).not.toContain('extend');
      }),
    );
  });
});

function drain(drainLeftMs: number, running: number, backlog: number): Partial<ServiceFacts> {
  return { phase: 'draining', drainLeftMs, running, backlog };
}

function step(state: NotifyState, event: NotifyEvent) {
  return stepNotify(state, event, 0, null);
}
