import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  backoffMs,
  type ConnectionEvent,
  type ConnectionState,
  INITIAL_STEP,
  STABLE_MS,
  stepConnection,
  TRANSITIONS,
} from '../../../supervisor/mcp/connection-machine.ts';

const STATES: readonly ConnectionState['state'][] = [
  'connecting',
  'live',
  'lost',
  'retrying',
  'failed',
  'closed',
];
const EVENTS: readonly ConnectionEvent['type'][] = [
  'opened',
  'open_failed',
  'broken',
  'ping_ok',
  'ping_missed',
  'torn_down',
  'retry_due',
  'close',
];

const at = fc.integer({ min: 0, max: 1_000_000 });
const event: fc.Arbitrary<ConnectionEvent> = fc.oneof(
  fc.record({ type: fc.constant('opened' as const), at }),
  fc.record({ type: fc.constant('open_failed' as const), reason: fc.string() }),
  fc.record({ type: fc.constant('broken' as const), reason: fc.string(), at }),
  fc.constant({ type: 'ping_ok' as const }),
  fc.record({ type: fc.constant('ping_missed' as const), at }),
  fc.record({
    type: fc.constant('torn_down' as const),
    decision: fc.oneof(
      fc.record({ kind: fc.constant('retry' as const), delayMs: fc.nat() }),
      fc.record({ kind: fc.constant('give_up' as const), reason: fc.string() }),
    ),
  }),
  fc.constant({ type: 'retry_due' as const }),
  fc.constant({ type: 'close' as const }),
);

const failures = fc.nat(20);
const everLive = fc.boolean();
const reason = fc.string();
const state: fc.Arbitrary<ConnectionState> = fc.oneof(
  fc.record({ state: fc.constant('connecting' as const), failures, everLive }),
  fc.record({ state: fc.constant('live' as const), failures, missed: fc.nat(1), since: at }),
  fc.record({ state: fc.constant('lost' as const), failures, everLive, reason }),
  fc.record({ state: fc.constant('retrying' as const), failures, everLive, reason }),
  fc.record({ state: fc.constant('failed' as const), reason }),
  fc.constant({ state: 'closed' as const }),
);

function described(from: ConnectionState, happened: ConnectionEvent): string {
  const { state: to, effects } = stepConnection(from, happened);
  return `${from.state} + ${happened.type} -> ${to.state} [${effects.map(({ type }) => type).join()}]`;
}
const ROWS = TRANSITIONS.map((row) => `${row.state} + ${row.event} -> ${row.next} [${row.effects.join()}]`);

describe('the connection machine', () => {
  it('has a table that is total over its states and events', () => {
    const covered = new Set(TRANSITIONS.map((row) => `${row.state} + ${row.event}`));
    for (const from of STATES)
      for (const happened of EVENTS) expect(covered).toContain(`${from} + ${happened}`);
  });

  it('does what its table says, and nothing else', () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(state, event, (from, happened) => {
        const step = described(from, happened);
        seen.add(step);
        return ROWS.includes(step);
      }),
      { numRuns: 5_000 },
    );
    expect([...seen].sort()).toEqual([...new Set(ROWS)].sort());
  });

  it('never opens beside an open connection, and announces up and down in turn', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        let current = INITIAL_STEP.state;
        let opening = 1;
        let up = false;
        let first = true;
        for (const happened of events) {
          const step = stepConnection(current, happened);
          for (const effect of step.effects) {
            if (effect.type === 'open') opening += 1;
            if (effect.type === 'tear_down') opening -= 1;
            if (effect.type === 'announce_up') {
              expect(up).toBe(false);
              expect(effect.first).toBe(first);
              up = true;
              first = false;
            }
            if (effect.type === 'announce_down') {
              expect(up).toBe(true);
              up = false;
            }
          }
          expect(opening).toBeLessThanOrEqual(1);
          expect(opening).toBeGreaterThanOrEqual(0);
          current = step.state;
        }
      }),
    );
  });

  it('stays closed', () => {
    fc.assert(
      fc.property(fc.array(event), (events) => {
        let current: ConnectionState = { state: 'closed' };
        for (const happened of events) current = stepConnection(current, happened).state;
        expect(current).toEqual({ state: 'closed' });
      }),
    );
  });

  it('counts failures in a row, and starts afresh after a connection that held', () => {
    const live: ConnectionState = { state: 'live', failures: 4, missed: 0, since: 1_000 };
    const broken = (when: number) => stepConnection(live, { type: 'broken', reason: 'gone', at: when }).state;
    expect(broken(1_000 + STABLE_MS - 1)).toMatchObject({ state: 'lost', failures: 5 });
    expect(broken(1_000 + STABLE_MS)).toMatchObject({ state: 'lost', failures: 1 });
  });

  it('backs off from an eighth of a second at least to ten seconds at most', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10_000 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (n, j) => {
          const delay = backoffMs(n, j);
          expect(delay).toBeGreaterThanOrEqual(125);
          expect(delay).toBeLessThanOrEqual(10_000);
          expect(backoffMs(n + 1, j)).toBeGreaterThanOrEqual(delay);
        },
      ),
    );
    expect(backoffMs(1, 0)).toBe(125);
    expect(backoffMs(99, 0.999)).toBeGreaterThan(9_900);
  });
});
