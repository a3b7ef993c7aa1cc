import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readinessOf, STARTING } from '../../../supervisor/lifecycle/readiness.ts';

const facts = fc.record({
  phase: fc.constantFrom('starting' as const, 'running' as const, 'draining' as const),
  paused: fc.boolean(),
  lameDuck: fc.boolean(),
  intelligenceAllDown: fc.boolean(),
  cannotSpawn: fc.boolean(),
  deaf: fc.array(fc.string(), { maxLength: 2 }),
});

describe('readiness', () => {
  it('holds exactly when running, not lame, with a model, able to start children and hearing everything', () => {
    fc.assert(
      fc.property(facts, (given) => {
        const { ready, reasons } = readinessOf(given);
        const { phase, lameDuck, intelligenceAllDown, cannotSpawn, deaf } = given;
        const able = !intelligenceAllDown && !cannotSpawn && deaf.length === 0;
        expect(ready).toBe(phase === 'running' && !lameDuck && able);
        expect(reasons.length === 0).toBe(ready);
      }),
    );
  });

  it('names every reason at once', () => {
    const all = {
      phase: 'draining',
      paused: true,
      lameDuck: true,
      intelligenceAllDown: true,
      cannotSpawn: true,
      deaf: ['inbox'],
    } as const;
    expect(readinessOf(all)).toEqual({
      ready: false,
      reasons: ['draining', 'lame_duck', 'intelligence_down', 'cannot_spawn', 'deaf_subscription'],
      paused: true,
      deaf_servers: ['inbox'],
    });
  });

  it('is starting before anything is known', () => {
    expect(STARTING).toMatchObject({ ready: false, reasons: ['starting'] });
  });
});
