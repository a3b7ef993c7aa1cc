import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_USAGE, type RunResult, type RunStart } from '../../../protocol/frames.ts';
import {
  CHILD_START,
  CHILD_TRANSITIONS,
  type ChildEvent,
  type ChildState,
  childStep,
} from '../../../supervisor/children/child-machine.ts';

const RESULT: RunResult = {
  run_id: 'r',
  status: 'completed',
  result: 'x',
  has_usable_partial: true,
  usage: NO_USAGE,
};
const START: RunStart = {
  run_id: 'r',
  agent_id: 'a',
  agent_path: '0',
  kind: 'run',
  instruction: '',
  tools: [],
  self_tools: [],
  limits: { max_steps: 1, max_tokens: 1, deadline_ms: 1, tool_timeout_ms: 1 },
  model: { endpoints: [{ url: 'script:final' }], timeout_ms: 1, max_attempts: 1 },
  telemetry: { instance: 'i', traceparent: '', log_level: 'info', log_content: false },
};
const EVENTS: readonly ChildEvent[] = [
  { type: 'ready' },
  { type: 'assign', start: START },
  { type: 'paused' },
  { type: 'resumed' },
  { type: 'result', result: RESULT },
  { type: 'stop', cause: 'drain' },
  { type: 'leader_exit' },
  { type: 'ended' },
];
const STATES: readonly ChildState[] = [
  { name: 'spawning' },
  { name: 'ready' },
  { name: 'running' },
  { name: 'paused' },
  { name: 'finishing', answered: false, cause: null },
  { name: 'exited', answered: false, cause: null },
];

describe('the child machine', () => {
  it('has exactly one row for every state and event, and does what it says', () => {
    const keys = CHILD_TRANSITIONS.map((row) => `${row.state} ${row.event}`);
    const all = STATES.flatMap(({ name }) => EVENTS.map(({ type }) => `${name} ${type}`));
    expect(keys.toSorted()).toEqual(all.toSorted());
    for (const state of STATES) {
      for (const event of EVENTS) {
        const row = CHILD_TRANSITIONS.find((one) => one.state === state.name && one.event === event.type);
        const stepped = childStep(state, event);
        expect({ next: stepped.state.name, effects: stepped.effects }).toEqual({
          next: row?.next,
          effects: row?.effects,
        });
      }
    }
  });

  it('settles exactly once, keeps the first cause, and lets a stop explain nothing after the answer', () => {
    const event = fc.oneof(
      fc.constantFrom(...EVENTS.filter(({ type }) => type !== 'ended')),
      fc.constantFrom<ChildEvent>(
        { type: 'stop', cause: 'deadline' },
        { type: 'stop', cause: 'wedged' },
        { type: 'stop', cause: 'lease_lost' },
      ),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), (events) => {
        let state: ChildState = CHILD_START;
        let settled = 0;
        let started = 0;
        let expected: string | null = null;
        let over = false;
        for (const one of [...events, { type: 'ended' } as const, { type: 'ended' } as const]) {
          const leaving = state.name === 'finishing' || state.name === 'exited';
          if (!leaving && !over && one.type === 'stop') expected = one.cause;
          const stepped = childStep(state, one);
          state = stepped.state;
          over ||= state.name === 'finishing' || state.name === 'exited';
          settled += stepped.effects.filter((effect) => effect === 'settle').length;
          started += stepped.effects.filter((effect) => effect === 'send_start').length;
        }
        expect(settled).toBe(1);
        expect(started).toBeLessThanOrEqual(1);
        expect(state).toMatchObject({ name: 'exited', cause: expected });
      }),
    );
  });
});
