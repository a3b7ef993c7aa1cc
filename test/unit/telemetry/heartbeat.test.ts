import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Heartbeat, HeartbeatWatch } from '../../../supervisor/surface/heartbeat.ts';

describe('the heartbeat watch', () => {
  it('is stale exactly when no beat was seen for longer than the limit, and recovers once', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 200, max: 2_000 }),
        fc.array(fc.record({ beat: fc.boolean(), step: fc.integer({ min: 1, max: 500 }) }), {
          maxLength: 100,
        }),
        (staleMs, steps) => {
          const watch = new HeartbeatWatch(staleMs, 500, 0, 0);
          let now = 0;
          let count = 0;
          let lastBeat = 0;
          let stale = false;
          for (const { beat, step } of steps) {
            now += step;
            if (beat) {
              count += 1;
              lastBeat = now;
            }
            const verdict = watch.look(count, now);
            const expected = now - lastBeat > staleMs;
            expect(verdict).toEqual({
              stale: expected,
              ageMs: now - lastBeat,
              recovered: stale && !expected,
            });
            stale = expected;
          }
        },
      ),
    );
  });

  it('does not take a stop of the whole process for a stall of the reactor', () => {
    const watch = new HeartbeatWatch(10_000, 2_000, 0, 0);
    expect(watch.look(1, 100).stale).toBe(false);
    expect(watch.look(1, 100 + 3_600_000)).toEqual({ stale: false, ageMs: 0, recovered: false });
    expect(watch.look(1, 100 + 3_600_000 + 1_000).ageMs).toBe(1_000);
  });

  it('counts beats in memory that two holders share, around the end of the number range', () => {
    const heartbeat = new Heartbeat();
    const other = new Heartbeat(heartbeat.buffer);
    new Int32Array(heartbeat.buffer)[0] = 2 ** 31 - 1;
    const before = other.read();
    heartbeat.beat();
    expect(other.read()).not.toBe(before);
    expect(other.read()).toBe(-(2 ** 31));
  });
});
