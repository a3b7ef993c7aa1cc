import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  classify,
  type Liveness,
  type LivenessEvent,
  livenessStart,
  livenessStep,
} from '../../../supervisor/children/liveness.ts';
import { LIVENESS_TRANSITIONS } from '../../../supervisor/children/liveness-table.ts';
import { DEFAULT_TIMINGS } from '../../../supervisor/children/timings.ts';

const T = DEFAULT_TIMINGS;
const WALL = 1_800_000_000_000;
/** A deadline no test but the one about deadlines comes near, ms. */
const FAR = 10_000_000;

/** Runs the machine on a clock of its own: `at` moves it, and every second there is a tick. */
class Model {
  state: Liveness = livenessStart(0, WALL);
  now = 0;
  wallOffset = WALL;
  pings = 0;
  verdict: string | null = null;

  do(event: { type: string } & Record<string, unknown>): readonly { type: string }[] {
    const timed = { now: this.now, wall: this.now + this.wallOffset, ...event } as LivenessEvent;
    const { state, effects } = livenessStep(this.state, timed, T);
    this.state = state;
    for (const effect of effects) {
      if (effect.type === 'ping') this.pings += 1;
      else this.verdict = effect.cause;
    }
    return effects;
  }

  /** Lets time pass in ticks; a child that answers does so at once. */
  pass(ms: number, answers = true): void {
    for (const end = this.now + ms; this.now < end; ) {
      this.now += T.tickMs;
      const effects = this.do({ type: 'tick' });
      if (answers && effects.some((effect) => effect.type === 'ping')) this.do({ type: 'pong' });
    }
  }

  in(name: Liveness['name']): this {
    if (name === 'watching' || name === 'paused') this.do({ type: 'assigned', deadlineMs: FAR });
    if (name === 'paused') this.do({ type: 'paused' });
    if (name === 'convicted') {
      this.do({ type: 'assigned', deadlineMs: 0 });
      this.now += T.tickMs;
      this.do({ type: 'tick' });
      this.verdict = null;
    }
    return this;
  }
}

/** Puts the model where the guard of a row holds, and returns the event. */
function prepare(model: Model, event: string): { type: string } & Record<string, unknown> {
  switch (event) {
    case 'assigned':
      return { type: 'assigned', deadlineMs: FAR };
    case 'tick late':
      model.now += T.tickMs + T.lateMs + 1;
      return { type: 'tick' };
    case 'tick silent':
      model.state = { ...model.state, progressAt: model.now - T.noProgressMs };
      break;
    case 'tick silent in a call':
      model.do({ type: 'call', id: 1, timeoutMs: 10 * T.noProgressMs });
      model.state = { ...model.state, progressAt: model.now - T.noProgressMs };
      break;
    case 'tick unanswered':
      model.state = { ...model.state, unanswered: T.pingMisses, pingAt: model.now - T.pingMs };
      break;
    case 'tick at the deadline':
      model.state = { ...model.state, deadlineAt: model.now };
      break;
    case 'tick':
      break;
    default:
      return { type: event };
  }
  model.now += T.tickMs;
  return { type: 'tick' };
}

describe('liveness', () => {
  it.each(LIVENESS_TRANSITIONS.map((row) => [`${row.state} × ${row.event}`, row] as const))(
    'table row %s',
    (_name, row) => {
      const model = new Model().in(row.state);
      const event = prepare(model, row.event);
      const effects = model
        .do(event)
        .map((effect) => ('cause' in effect ? `verdict ${effect.cause}` : effect.type));
      expect({ next: model.state.name, effects }).toEqual({ next: row.next, effects: row.effects });
    },
  );

  it('a child that only pongs is convicted by the no-progress detector, and not before its window', () => {
    const model = new Model().in('watching');
    model.pass(T.noProgressMs - T.tickMs);
    expect(model.verdict).toBeNull();
    model.pass(2 * T.tickMs);
    expect(model.verdict).toBe('no_progress');
  });

  it('a child that stops answering is wedged after three missed pings', () => {
    const model = new Model().in('watching');
    model.pass(T.pingMs * T.pingMisses - T.tickMs, false);
    expect(model.verdict).toBeNull();
    model.pass(T.pingMs + 2 * T.tickMs, false);
    expect(model.verdict).toBe('wedged');
  });

  it('a tool call that reports progress keeps its child alive for as long as it takes', () => {
    const model = new Model().in('watching');
    model.do({ type: 'call', id: 7, timeoutMs: 60_000 });
    for (let i = 0; i < 60; i += 1) {
      model.pass(30_000);
      model.do({ type: 'call_progress', id: 7 });
    }
    expect(model.verdict).toBeNull();
    model.do({ type: 'call_done', id: 7 });
    model.pass(T.noProgressMs + T.tickMs);
    expect(model.verdict).toBe('no_progress');
  });

  it('a silent tool call is bounded by its own limit', () => {
    const model = new Model().in('watching');
    model.do({ type: 'call', id: 7, timeoutMs: 2 * T.noProgressMs });
    model.pass(2 * T.noProgressMs);
    expect(model.verdict).toBeNull();
    model.pass(10_000);
    expect(model.verdict).toBe('no_progress');
  });

  it('a stepped wall clock kills nobody', () => {
    const model = new Model().in('watching');
    for (const step of [3_600_000, -7_200_000, 86_400_000]) {
      model.pass(T.noProgressMs / 2);
      model.wallOffset += step;
      model.do({ type: 'tick' });
      expect(model.verdict).toBeNull();
    }
  });

  it('a supervisor that was stopped for an hour convicts nobody when it wakes', () => {
    const model = new Model();
    model.do({ type: 'assigned', deadlineMs: 600_000 });
    model.pass(10_000);
    model.now += 3_600_000;
    model.do({ type: 'tick' });
    expect(model.verdict).toBeNull();
    // And then there is time to answer before the deadline is enforced.
    model.pass(T.pingMs - T.tickMs);
    expect(model.verdict).toBeNull();
    model.pass(2 * T.tickMs);
    expect(model.verdict).toBe('deadline');
  });

  it('whatever a child says, its run ends by its deadline', () => {
    const noise = fc.constantFrom('progress', 'pong', 'paused', 'resumed', 'call_done', 'call');
    fc.assert(
      fc.property(
        fc.array(fc.tuple(noise, fc.integer({ min: 1, max: 20 })), { maxLength: 60 }),
        fc.integer({ min: 1_000, max: 100_000 }),
        (events, deadlineMs) => {
          const model = new Model();
          model.do({ type: 'assigned', deadlineMs });
          for (const [type, ticks] of events) {
            model.do({ type, id: 1, timeoutMs: 1_000_000 });
            model.pass(ticks * T.tickMs);
          }
          model.pass(Math.max(0, deadlineMs - model.now) + T.tickMs);
          expect(model.verdict).not.toBeNull();
          expect(model.state.name).toBe('convicted');
        },
      ),
    );
  });

  it('a child that answers and moves within its windows is never convicted before its deadline', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 119 }), { maxLength: 40 }), (gaps) => {
        const model = new Model().in('watching');
        for (const gap of gaps) {
          model.pass(gap * 1_000);
          model.do({ type: 'progress' });
        }
        expect(model.verdict).toBeNull();
      }),
    );
  });

  it('classifies by the end of the pipe and the answers together', () => {
    const fresh = livenessStart(0, WALL);
    const seen = { exited: false, endOfFile: false, liveness: fresh };
    expect(classify(seen)).toBe('healthy');
    expect(classify({ ...seen, liveness: { ...fresh, unanswered: 2 } })).toBe('busy');
    expect(classify({ ...seen, liveness: { ...fresh, name: 'convicted' } })).toBe('stuck');
    expect(classify({ ...seen, endOfFile: true })).toBe('exiting');
    expect(classify({ ...seen, endOfFile: true, exited: true })).toBe('dead');
  });
});
