import { describe, expect, it } from 'vitest';
import type { RunOutcome } from '../../../supervisor/children/run.ts';
import { type AfterRunFacts, afterRootRun } from '../../../supervisor/lifecycle/mode.ts';
import { runOutcome } from '../../helpers/run-outcome.ts';

const facts: AfterRunFacts = {
  now: 1_000,
  intervalMs: 0,
  budgetRemaining: null,
  budgetExitCode: null,
  verdict: () => ({ kind: 'retry', at: 1_500 }),
};
const decide = (
  mode: 'once' | 'loop' | 'schedule' | 'reactive',
  over: Partial<RunOutcome>,
  more: Partial<AfterRunFacts> = {},
) => afterRootRun(mode, runOutcome(over), { ...facts, ...more });

describe('what follows a root run', () => {
  it.each([
    [{ status: 'completed' }, 0],
    [{ status: 'refused' }, 5],
    [{ status: 'exhausted_steps' }, 7],
    [{ status: 'exhausted_tokens', hasUsablePartial: true }, 3],
    [{ status: 'deadline' }, 124],
    [{ status: 'stalled' }, 1],
    [{ status: 'loop_detected', hasUsablePartial: true }, 3],
    [{ status: 'cancelled' }, 0],
    [{ status: 'crashed' }, 1],
    [{ status: 'crashed', intelligenceFailed: true }, 4],
  ] as const)('ends a one-shot run that was %o with exit code %i', (over, exitCode) => {
    expect(decide('once', over)).toEqual({ kind: 'finish', exitCode });
  });

  it('remaps 3 and 7, and nothing else, to the budget exit code', () => {
    expect(decide('once', { status: 'exhausted_steps' }, { budgetExitCode: 42 })).toEqual({
      kind: 'finish',
      exitCode: 42,
    });
    expect(decide('once', { status: 'stalled', hasUsablePartial: true }, { budgetExitCode: 42 })).toEqual({
      kind: 'finish',
      exitCode: 42,
    });
    expect(decide('once', { status: 'deadline' }, { budgetExitCode: 42 })).toEqual({
      kind: 'finish',
      exitCode: 124,
    });
  });

  it('loops until a clean bound', () => {
    expect(decide('loop', { status: 'completed' }, { intervalMs: 50 })).toEqual({ kind: 'again', at: 1_050 });
    expect(decide('loop', { status: 'completed' }, { budgetRemaining: 0 })).toEqual({
      kind: 'finish',
      exitCode: 0,
    });
    expect(decide('loop', { status: 'refused' })).toEqual({ kind: 'finish', exitCode: 5 });
  });

  it('backs off after a crash, and gives up when the breaker opens', () => {
    expect(decide('loop', { status: 'crashed' })).toEqual({ kind: 'again', at: 1_500 });
    const open = { verdict: () => ({ kind: 'open' as const, until: 9_000 }) };
    expect(decide('loop', { status: 'crashed' }, open)).toEqual({ kind: 'finish', exitCode: 1 });
    expect(decide('loop', { status: 'crashed', intelligenceFailed: true }, open)).toEqual({
      kind: 'finish',
      exitCode: 4,
    });
  });

  it('lets a failed run end neither a schedule nor a reactive daemon', () => {
    expect(decide('schedule', { status: 'crashed' })).toEqual({ kind: 'wait' });
    expect(decide('reactive', { status: 'crashed', intelligenceFailed: true })).toEqual({ kind: 'wait' });
  });
});
