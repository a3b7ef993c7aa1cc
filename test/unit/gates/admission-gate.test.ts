import { describe, expect, it } from 'vitest';
import { type AdmissionState, admit, capacityOf } from '../../../supervisor/gates/admission-gate.ts';

const free: AdmissionState = {
  draining: false,
  paused: false,
  lameDuck: false,
  starting: false,
  cannotSpawn: false,
  routeInflight: 0,
  routeMaxInflight: 4,
  active: 0,
  maxTotal: 64,
  budgetRemaining: null,
};

describe('admission gate', () => {
  it.each([
    [{}, { kind: 'admit' }],
    [
      { draining: true, paused: true },
      { kind: 'wait', reason: 'draining' },
    ],
    [{ paused: true }, { kind: 'wait', reason: 'paused' }],
    [{ lameDuck: true }, { kind: 'wait', reason: 'lame_duck' }],
    [{ starting: true }, { kind: 'wait', reason: 'starting' }],
    [{ cannotSpawn: true }, { kind: 'wait', reason: 'cannot_spawn' }],
    [{ budgetRemaining: 0 }, { kind: 'wait', reason: 'budget' }],
    [{ budgetRemaining: 1 }, { kind: 'admit' }],
    [{ routeInflight: 3 }, { kind: 'admit' }],
    [{ routeInflight: 4 }, { kind: 'wait', reason: 'route_full' }],
    [{ active: 63 }, { kind: 'admit' }],
    [{ active: 64 }, { kind: 'wait', reason: 'total_full' }],
  ] as const)('decides %o', (over, expected) => {
    expect(admit({ ...free, ...over })).toEqual(expected);
  });

  it('counts capacity as the lesser of all routes and the total', () => {
    expect(capacityOf([4, 4], 64)).toBe(8);
    expect(capacityOf([40, 40], 64)).toBe(64);
  });
});
