import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RunEnd } from '../../../supervisor/children/agent-run.ts';
import type { Child } from '../../../supervisor/children/child.ts';
import { ChildPool } from '../../../supervisor/children/pool.ts';

const LIFE_MS = 30;
const GONE: RunEnd = { cause: 'vanished', exit: { code: 1, signal: null }, rung: 'none', error: null };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A pool of stand-ins that are ready after `readyMs` and die `lifeMs` later, or never. */
function poolOf(readyMs: number, lifeMs: () => number | null) {
  let starts = 0;
  let trips = 0;
  const pool: ChildPool = new ChildPool(
    {
      clock: { now: () => Date.now(), wall: () => Date.now() },
      random: () => 0,
      spawnsPerSlot: 2,
      slotMs: 20,
      maxStarting: 4,
    },
    {
      spawn: () => {
        starts += 1;
        const stop = (): void => void setTimeout(() => pool.onEnded(child, GONE, true), 1);
        const child = { run: null, stop } as unknown as Child;
        setTimeout(() => {
          pool.onReady(child);
          const life = lifeMs();
          if (life !== null) setTimeout(() => pool.onEnded(child, GONE, false), life);
        }, readyMs);
        return child;
      },
      start: () => true,
      failed: () => undefined,
      warmDied: (_reason, verdict) => {
        if (verdict === 'tripped') trips += 1;
      },
      canStart: () => undefined,
    },
  );
  return { pool, starts: () => starts, trips: () => trips };
}

describe('children that come up and die at once', () => {
  it.each([1, 2, 8])('are stopped by the breaker, however many are kept warm: %i', async (target) => {
    const { pool, starts, trips } = poolOf(60, () => LIFE_MS);
    pool.setTarget(target);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(trips()).toBe(1);
    expect(starts()).toBeLessThanOrEqual(5 + 4); // what was starting when it opened
    const before = starts();
    // One probe a minute from then on.
    await vi.advanceTimersByTimeAsync(120_000);
    expect(starts() - before).toBeGreaterThanOrEqual(1);
    expect(starts() - before).toBeLessThanOrEqual(2);
    pool.close();
  });

  it.each([
    ['has stayed up', 20_000],
    ['was told to go while it was watched', 500],
  ])('are replaced again once a probe %s', async (_how, watchedMs) => {
    let life: number | null = LIFE_MS;
    const { pool, starts, trips } = poolOf(60, () => life);
    pool.setTarget(3);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(trips()).toBe(1);
    life = null;
    while (pool.warm === 0) await vi.advanceTimersByTimeAsync(100);
    expect(pool.warm).toBe(1); // the probe
    await vi.advanceTimersByTimeAsync(watchedMs);
    pool.setTarget(0);
    await vi.advanceTimersByTimeAsync(100);
    expect(pool.warm).toBe(0);
    pool.setTarget(3);
    await vi.advanceTimersByTimeAsync(5_000);
    expect([pool.warm, trips()]).toEqual([3, 1]);
    expect(starts()).toBeLessThan(20);
    pool.close();
    expect(vi.getTimerCount()).toBe(0);
  });
});
