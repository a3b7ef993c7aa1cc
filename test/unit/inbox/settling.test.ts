import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { FileState } from '../../../supervisor/inbox/folder-scan.ts';
import { type SettleTimes, Settling } from '../../../supervisor/inbox/settling.ts';

const TIMES: SettleTimes = { quietMs: 50, emptyQuietMs: 1000, maxWaitMs: 2000, maxNewWaitMs: 10_000 };
const state = (size: number): FileState => ({ size, mtimeMs: 1, ino: 1 });

function make(known: readonly string[] = []): Settling {
  return new Settling(TIMES, (path) => known.includes(path));
}

test('a touched path is looked at after a quiet time, and each touch starts it anew', () => {
  const settling = make();
  settling.touch('a', 0);
  settling.touch('a', 40);
  expect(settling.due(60)).toEqual([]);
  expect(settling.due(90)).toEqual(['a']);
  expect(settling.settle('a', state(3), 90)).toBe(true);
  expect(settling.size).toBe(0);
});

test('a state found without an event must be found a second time', () => {
  const settling = make();
  settling.touch('a', 0, state(3));
  expect(settling.settle('a', state(4), 50)).toBe(false);
  expect(settling.due(60)).toEqual([]);
  expect(settling.due(100)).toEqual(['a']);
  expect(settling.settle('a', state(4), 100)).toBe(true);
});

test('a new empty file is given time for its content, an emptied one is not', () => {
  const settling = make(['old']);
  settling.touch('new', 0);
  settling.touch('old', 0);
  expect(settling.settle('new', state(0), 50)).toBe(false);
  expect(settling.settle('old', state(0), 50)).toBe(true);
  expect(settling.due(900)).toEqual([]);
  expect(settling.due(1050)).toEqual(['new']);
  expect(settling.settle('new', state(0), 1050)).toBe(true);
});

test('a known file that never rests is announced all the same, a new one only much later', () => {
  const settling = make(['log']);
  for (let now = 0; now <= 2000; now += 10) {
    settling.touch('log', now);
    settling.touch('copy', now);
  }
  expect(settling.due(2000)).toEqual(['log']);
  expect(settling.settle('log', state(9), 2000)).toBe(true);
  for (let now = 2000; now <= 10_000; now += 10) settling.touch('copy', now);
  expect(settling.due(10_000)).toEqual(['copy']);
});

test('every touched path is settled some time after the last change, whatever came before', () => {
  const step = fc.record({ wait: fc.nat(3000), path: fc.constantFrom('a', 'b'), size: fc.option(fc.nat(2)) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const settling = make(['b']);
      const disk = new Map<string, FileState | null>();
      let now = 0;
      const look = (): void => {
        for (const path of settling.due(now)) settling.settle(path, disk.get(path) ?? null, now);
      };
      for (const { wait, path, size } of steps) {
        now += wait;
        look();
        disk.set(path, size === null ? null : state(size));
        settling.touch(path, now);
      }
      for (let round = 0; round < 100; round++) {
        now += 25;
        look();
      }
      expect(settling.size).toBe(0);
    }),
  );
});
