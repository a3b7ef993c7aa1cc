import { describe, expect, it } from 'vitest';
import type { RunEnd } from '../../../supervisor/children/agent-run.ts';
import { START_GOVERNOR, StartGate } from '../../../supervisor/children/start-gate.ts';

const ended = (message: string): RunEnd => ({
  cause: 'not_ready',
  exit: { code: 1, signal: null },
  rung: 'none',
  error: { type: 'NotReady', message },
});

/** A gate whose breaker has opened at `now`. */
function broken(now: number): StartGate {
  const gate = new StartGate(() => 0);
  gate.failed(now, ended('first'));
  gate.failed(now, ended('second'));
  return gate;
}

describe('the gate of starts', () => {
  it('closes at the second child in a row that does not come up, with its reason', () => {
    const gate = new StartGate(() => 0);
    gate.failed(0, ended('first'));
    expect(gate.able).toBe(true);
    gate.failed(0, ended('second'));
    expect(gate.able).toBe(false);
    expect(gate.reason).toBe('second');
    expect(gate.until).toBe(START_GOVERNOR.coolMs);
  });

  it('forgets failures as soon as one child comes up', () => {
    const gate = new StartGate(() => 0);
    for (let round = 0; round < 20; round += 1) {
      gate.failed(round, ended('now and then'));
      gate.cameUp();
    }
    expect(gate.able).toBe(true);
    expect(gate.ask(20)).toBe(true);
  });

  it('lets one probe through when it is due, and another after that one has failed', () => {
    const gate = broken(0);
    expect(gate.ask(START_GOVERNOR.coolMs - 1)).toBe(false);
    expect(gate.ask(START_GOVERNOR.coolMs)).toBe(true);
    expect(gate.able).toBe(false);
    expect(gate.ask(START_GOVERNOR.coolMs)).toBe(false);
    expect(gate.until).toBeNull();
    gate.failed(START_GOVERNOR.coolMs + 5, ended('third'));
    expect(gate.able).toBe(false);
    expect(gate.until).toBe(2 * START_GOVERNOR.coolMs + 5);
    expect(gate.ask(2 * START_GOVERNOR.coolMs + 5)).toBe(true);
    gate.cameUp();
    expect(gate.able).toBe(true);
  });

  it('opens at once for a child that comes up late, whatever the breaker says', () => {
    const gate = broken(0);
    gate.cameUp();
    expect(gate.able).toBe(true);
    expect(gate.ask(1)).toBe(true);
  });
});
