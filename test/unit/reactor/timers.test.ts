import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Timers } from '../../../supervisor/reactor/timers.ts';
import { ManualClock } from '../../helpers/manual-clock.ts';

describe('timers', () => {
  it('fire in order of time, once each, and only when due', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1_000), { maxLength: 200 }), (times) => {
        const clock = new ManualClock();
        const timers = new Timers(clock);
        const fired: number[] = [];
        times.forEach((at, index) => {
          timers.set(`t${index}`, at, () => fired.push(at));
        });
        clock.advance(500);
        timers.runDue();
        expect(fired).toEqual(times.filter((at) => at <= 500).sort((a, b) => a - b));
        clock.advance(500);
        timers.runDue();
        expect(fired).toEqual([...times].sort((a, b) => a - b));
        expect(timers.size).toBe(0);
      }),
    );
  });

  it('replace a timer of the same name and forget a cleared one', () => {
    const clock = new ManualClock();
    const timers = new Timers(clock);
    const fired: string[] = [];
    timers.set('a', 10, () => fired.push('old'));
    timers.set('a', 20, () => fired.push('new'));
    timers.set('b', 10, () => fired.push('b'));
    timers.clear('b');
    clock.advance(15);
    timers.runDue();
    expect(fired).toEqual([]);
    clock.advance(5);
    timers.runDue();
    expect(fired).toEqual(['new']);
  });

  describe('on the runtime', () => {
    beforeEach(() => {
      vi.useFakeTimers();
    });
    afterEach(() => {
      vi.useRealTimers();
    });

    it('do not fire a 30-day deadline at once', () => {
      const start = Date.now();
      const timers = new Timers({ now: () => Date.now() - start, wall: () => Date.now() });
      const days = 24 * 3600 * 1000;
      let fired = false;
      timers.set('deadline', 30 * days, () => {
        fired = true;
      });
      vi.advanceTimersByTime(29 * days);
      expect(fired).toBe(false);
      vi.advanceTimersByTime(days + 1);
      expect(fired).toBe(true);
      expect(vi.getTimerCount()).toBe(0);
    });
  });
});
