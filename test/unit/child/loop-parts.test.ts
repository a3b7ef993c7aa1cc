import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Budget } from '../../../child/loop/budget.ts';
import { cutMiddle, distill } from '../../../child/loop/distill.ts';
import { startTimer } from '../../../child/loop/long-timer.ts';
import { type ControlEvent, nextWanted, RunControl, type Wanted } from '../../../child/loop/run-control.ts';
import {
  FRESH_WATCH,
  LOOP_REPEATS,
  REPAIRS,
  STALL_TURNS,
  type TurnEvent,
  type Verdict,
  WARN_REPEATS,
  watchTurn,
} from '../../../child/loop/stop-conditions.ts';
import { Transcript } from '../../../child/loop/transcript.ts';
import { toolCall } from './fakes.ts';

const STOP = { kind: 'stop', request: { kind: 'cancelled', reason: 'x' } } as const;
const WANTED: readonly Wanted[] = [{ kind: 'run' }, { kind: 'pause' }, { kind: 'wind_down' }, STOP];
const EVENTS: readonly ControlEvent[] = [{ kind: 'pause' }, { kind: 'resume' }, { kind: 'wind_down' }, STOP];

describe('run control', () => {
  test.each([
    ['run', ['pause', 'run', 'wind_down', 'stop']],
    ['pause', ['pause', 'run', 'wind_down', 'stop']],
    ['wind_down', ['wind_down', 'wind_down', 'wind_down', 'stop']],
    ['stop', ['stop', 'stop', 'stop', 'stop']],
  ])('from %s the table is followed for pause, resume, wind-down and stop', (from, expected) => {
    const wanted = WANTED.find((state) => state.kind === from) ?? STOP;
    expect(EVENTS.map((event) => nextWanted(wanted, event).kind)).toEqual(expected);
  });

  test('the first stop wins and is the reason of the signal', () => {
    const control = new RunControl();
    control.apply({ kind: 'stop', request: { kind: 'deadline' } });
    control.apply(STOP);
    expect(control.state).toEqual({ kind: 'stop', request: { kind: 'deadline' } });
    expect(control.signal.reason).toEqual({ kind: 'deadline' });
  });

  test('after a deadline the next task starts anew, still paused if it was', async () => {
    const control = new RunControl();
    control.apply({ kind: 'pause' });
    control.apply({ kind: 'stop', request: { kind: 'deadline' } });
    const next = control.forNextTask();
    expect(next).not.toBe(control);
    expect(next.state.kind).toBe('pause');
    expect(next.signal.aborted).toBe(false);
    next.apply(STOP);
    expect(next.forNextTask()).toBe(next);
  });

  test('a boundary reports one pause and one resume, however often it is paused again meanwhile', async () => {
    const control = new RunControl();
    const seen: string[] = [];
    control.apply({ kind: 'pause' });
    const passage = control.boundary((kind) => seen.push(kind));
    control.apply({ kind: 'resume' });
    control.apply({ kind: 'pause' });
    control.apply({ kind: 'resume' });
    expect(await passage).toEqual({ kind: 'run' });
    expect(seen).toEqual(['paused', 'resumed']);
  });
});

describe('stop conditions', () => {
  function judge(events: readonly TurnEvent[]): Verdict[] {
    let watch = FRESH_WATCH;
    return events.map((event) => {
      const next = watchTurn(watch, event);
      watch = next.watch;
      return next.verdict;
    });
  }
  const called = (...signatures: string[]): TurnEvent[] =>
    signatures.map((signature) => ({ kind: 'called', signature }));

  test('one call repeated warns, then ends as a loop', () => {
    const kinds = judge(called(...'aaaaa')).map((verdict) => verdict.kind);
    expect(kinds[WARN_REPEATS - 1]).toBe('warn');
    expect(kinds.indexOf('end')).toBe(LOOP_REPEATS - 1);
  });

  test.each(['ababababab', 'abcabcabcabcabc'])('the cycle %s is a loop', (turns) => {
    const verdicts = judge(called(...turns));
    expect(verdicts.at(-1)).toEqual({ kind: 'end', status: 'loop_detected' });
    expect(verdicts.slice(0, -1).map((verdict) => verdict.kind)).not.toContain('end');
  });

  test('turns that are all different never end by themselves', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string(), { minLength: 1, maxLength: 60 }), (turns) => {
        expect(judge(called(...turns)).every((verdict) => verdict.kind === 'go_on')).toBe(true);
      }),
    );
  });

  test('a call resets the count of fruitless turns', () => {
    const fruitless: TurnEvent[] = Array.from({ length: STALL_TURNS - 1 }, () => ({ kind: 'unfinished' }));
    const events = [...fruitless, ...called('a'), ...fruitless, ...called('b')];
    expect(judge(events).map((verdict) => verdict.kind)).not.toContain('end');
    expect(judge([...fruitless, { kind: 'unusable' }]).at(-1)).toEqual({ kind: 'end', status: 'stalled' });
  });

  test('repairs are counted over the whole task, calls between them or not', () => {
    const rejected: TurnEvent = { kind: 'rejected' };
    const events = Array.from({ length: REPAIRS + 1 }, (_, n) => [...called(`c${n}`), rejected]).flat();
    const kinds = judge(events).map((verdict) => verdict.kind);
    expect(kinds.indexOf('end')).toBe(events.length - 1);
  });

  test('what is remembered stays bounded', () => {
    let watch = FRESH_WATCH;
    for (let n = 0; n < 1000; n++) watch = watchTurn(watch, { kind: 'called', signature: `${n}` }).watch;
    expect(watch.turns.length).toBeLessThanOrEqual(LOOP_REPEATS * 3);
  });
});

describe('budget', () => {
  const limits = { max_steps: 2, max_tokens: 10, deadline_ms: 100, tool_timeout_ms: 1 };

  test('a session has its limits afresh at each wake, while usage adds up', () => {
    let now = 0;
    const budget = new Budget(limits, () => now);
    budget.recordStep();
    budget.recordStep();
    budget.recordTokens({ tokensIn: 8, tokensOut: 4 });
    expect(budget.exhausted()).toBe('exhausted_steps');
    now = 500;
    expect(budget.exhausted()).toBe('deadline');
    budget.begin();
    expect(budget.exhausted()).toBeNull();
    expect([budget.stepsLeft, budget.tokensLeft, budget.msLeft]).toEqual([2, 10, 100]);
    expect(budget.usage).toEqual({ tokens_in: 8, tokens_out: 4, steps: 2, subagents: 0 });
  });
});

describe('transcript', () => {
  const limits = { text: 1000, total: 4000 };

  test('a long text is cut in the middle, with a note', () => {
    const transcript = new Transcript(limits);
    transcript.user(`${'a'.repeat(2000)}END`);
    const [message] = transcript.messages;
    expect(message?.text.length).toBeLessThanOrEqual(1000);
    expect(message?.text).toMatch(/characters cut/);
    expect(message?.text.endsWith('END')).toBe(true);
  });

  test('old tool results are elided first; the task and the turn at hand stay', () => {
    const transcript = new Transcript(limits);
    transcript.user('the task');
    for (let turn = 0; turn < 6; turn++) {
      for (const call of transcript.assistant('', [toolCall('s__a', { turn })])) {
        transcript.result(call, `${turn}`.repeat(900), false);
      }
    }
    const results = transcript.messages.flatMap((m) => (m.role === 'tool' ? [m.text] : []));
    expect(transcript.messages[0]).toEqual({ role: 'user', text: 'the task' });
    expect(results.at(-1)).toBe('5'.repeat(900));
    expect(results[0]).toMatch(/^\[elided/);
    expect(transcript.length).toBeLessThanOrEqual(limits.total);
  });

  test('the results of one turn share the room there is', () => {
    const transcript = new Transcript(limits);
    transcript.user('the task');
    const made = transcript.assistant(
      '',
      Array.from({ length: 10 }, (_, n) => toolCall('s__a', { n })),
    );
    for (const call of made) transcript.result(call, 'x'.repeat(5000), false, made.length);
    expect(transcript.messages.filter((m) => m.role === 'tool' && m.text.startsWith('x'))).toHaveLength(10);
    expect(transcript.length).toBeLessThanOrEqual(limits.total);
  });

  test('whatever is said, the size stays bounded and every result follows its call', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('user' as const), text: fc.string({ maxLength: 2000 }) }),
      fc.record({ kind: fc.constant('text' as const), text: fc.string({ maxLength: 2000 }) }),
      fc.record({
        kind: fc.constant('calls' as const),
        sizes: fc.array(fc.nat(3000), { minLength: 1, maxLength: 6 }),
      }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const transcript = new Transcript(limits);
        transcript.user('the task');
        for (const entry of steps) {
          if (entry.kind === 'user') transcript.user(entry.text);
          else if (entry.kind === 'text') transcript.assistant(entry.text, []);
          else {
            const made = transcript.assistant(
              '',
              entry.sizes.map((size) => toolCall('s__a', { size })),
            );
            for (const [index, call] of made.entries()) {
              transcript.result(call, 'r'.repeat(entry.sizes[index] ?? 0), false, made.length);
            }
          }
          expect(transcript.length).toBeLessThanOrEqual(limits.total);
        }
        expect(transcript.messages[0]).toEqual({ role: 'user', text: 'the task' });
        let open: string[] = [];
        for (const message of transcript.messages) {
          if (message.role === 'tool') {
            expect(open.shift()).toBe(message.callId);
          } else {
            expect(open).toEqual([]);
            open = message.role === 'assistant' ? message.calls.map((call) => call.id) : [];
          }
        }
      }),
    );
  });

  test('an answer that says nothing at all leaves no message behind', () => {
    const transcript = new Transcript();
    transcript.assistant('  ', []);
    expect(transcript.messages).toEqual([]);
  });
});

describe('distilled result', () => {
  test('stays within its bytes, is valid UTF-8 and says that it was cut', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', maxLength: 400 }),
        fc.integer({ min: 60, max: 300 }),
        (text, max) => {
          const result = distill(text, max);
          expect(Buffer.byteLength(result)).toBeLessThanOrEqual(max);
          expect(result).not.toContain('\uFFFD');
          if (Buffer.byteLength(text.trim()) > max)
            expect(result).toMatch(/\[cut: the answer had \d+ bytes\]$/);
          else expect(result).toBe(text.trim());
        },
      ),
    );
  });

  test('cutting in the middle keeps the limit and tears no surrogate pair', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 500 }),
        fc.integer({ min: 50, max: 400 }),
        (text, max) => {
          const cut = cutMiddle(text, max);
          expect(cut.length).toBeLessThanOrEqual(max);
          if (text.length > max) expect(Buffer.from(cut).toString()).toBe(cut);
        },
      ),
    );
  });
});

describe('long timer', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('H26: a deadline of thirty days does not fire at once, but after thirty days', () => {
    const fire = vi.fn();
    const days = 24 * 3600 * 1000;
    startTimer(30 * days, fire);
    vi.advanceTimersByTime(30 * days - 1);
    expect(fire).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(fire).toHaveBeenCalledTimes(1);
  });

  test('a cancelled timer does not fire, in whichever piece it was', () => {
    const fire = vi.fn();
    const cancel = startTimer(2 ** 31 + 1000, fire);
    vi.advanceTimersByTime(2 ** 31);
    cancel();
    vi.advanceTimersByTime(5000);
    expect(fire).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });
});
