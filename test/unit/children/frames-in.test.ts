import { describe, expect, it } from 'vitest';
import {
  MAX_FRAME_BYTES,
  NO_USAGE,
  parseFrameFromChild,
  type Response,
  type ToolOutcome,
} from '../../../protocol/frames.ts';
import { encodeFrame } from '../../../protocol/ndjson.ts';
import { AgentRun, outcomeOf } from '../../../supervisor/children/agent-run.ts';
import { CallDesk, type CallDeskHooks } from '../../../supervisor/children/call-desk.ts';
import { type FrameSink, takeFrame } from '../../../supervisor/children/frame-intake.ts';
import { LogRelay } from '../../../supervisor/children/log-relay.ts';
import type { RunSpec } from '../../../supervisor/children/run.ts';
import { SessionWakes } from '../../../supervisor/children/session-wakes.ts';
import { ManualClock } from '../../helpers/manual-clock.ts';
import { nullLog, recordingLog } from '../../helpers/null-log.ts';

const SPEC: RunSpec = {
  runId: 'r1',
  kind: 'run',
  instruction: 'x',
  event: null,
  tools: [{ name: 's__t', server: 's', tool: 't', description: '', input_schema: {} }],
  limits: { max_steps: 1, max_tokens: 1, deadline_ms: 1_000, tool_timeout_ms: 500 },
  outputContract: null,
  traceparent: '',
  route: null,
};
const PLACE = { agentId: 'a', path: '0', depth: 0, parent: null, rootRunId: 'r1' };
const makeRun = (): AgentRun => new AgentRun(SPEC, PLACE, 0, nullLog);

describe('frames of a child', () => {
  const heard = (runId: string | null, frame: object): string[] => {
    const said: string[] = [];
    const note =
      (what: string) =>
      (...details: unknown[]): void => {
        said.push([what, ...details.filter((detail) => typeof detail === 'string')].join(' '));
      };
    const sink: FrameSink = {
      runId,
      ready: note('ready'),
      modelHeld: note('modelHeld'),
      pong: note('pong'),
      progress: note('progress'),
      result: note('result'),
      turn: note('turn'),
      log: note('log'),
      request: note('request'),
      cancelRequest: note('cancelRequest'),
      unexpected: note('unexpected'),
      incompatible: note('incompatible'),
    };
    takeFrame(parseFrameFromChild(frame), sink);
    return said;
  };
  const result = {
    run_id: 'r1',
    status: 'completed',
    result: '',
    has_usable_partial: false,
    usage: NO_USAGE,
  };
  const call = { run_id: 'r1', name: 's__t', arguments: {}, timeout_ms: 1 };

  it.each([
    ['ready', 'r1', { method: 'ready', params: { protocol_version: 1, pid: 1 } }, 'ready'],
    [
      'ready of another version',
      'r1',
      { method: 'ready', params: { protocol_version: 9, pid: 1 } },
      'incompatible',
    ],
    ['an answer to a ping', 'r1', { id: 1, result: {} }, 'pong'],
    [
      'an error answer',
      'r1',
      { id: 1, error: { code: 1, message: 'no' } },
      'unexpected an error answer to a ping',
    ],
    ['the result of its run', 'r1', { method: 'run.result', params: result }, 'result'],
    [
      'the result of another run',
      'r2',
      { method: 'run.result', params: result },
      'unexpected run.result for run r1',
    ],
    [
      'a result without a run',
      null,
      { method: 'run.result', params: result },
      'unexpected run.result for run r1',
    ],
    ['a request of its run', 'r1', { id: 4, method: 'tool.call', params: call }, 'request'],
    [
      'a request of another run',
      'r2',
      { id: 4, method: 'tool.call', params: call },
      'unexpected a request for run r1',
    ],
    ['a cancelled request', 'r1', { method: 'request.cancel', params: { id: 4 } }, 'cancelRequest'],
    [
      'a log line',
      null,
      { method: 'log', params: { level: 'info', event: 'loop.step', fields: {} } },
      'log info loop.step',
    ],
  ])('%s goes where it belongs', (_what, runId, frame, expected) => {
    expect(heard(runId, frame)).toEqual([expected]);
  });
});

describe('the desk for calls', () => {
  const desk = (callTool: CallDeskHooks['callTool']) => {
    const answers: Response[] = [];
    const notes: string[] = [];
    const made = new CallDesk(makeRun(), {
      callTool,
      selfCall: () => Promise.resolve({ text: 'self', is_error: false }),
      send: (frame) => {
        encodeFrame(frame, 10_000);
        if ('id' in frame) answers.push(frame);
        else notes.push(frame.params.note);
      },
      opened: (id, timeoutMs) => notes.push(`opened ${id} ${timeoutMs}`),
      progressed: (id) => notes.push(`progressed ${id}`),
      closed: (id) => notes.push(`closed ${id}`),
      outOfScope: (name) => notes.push(`out of scope ${name}`),
    });
    const ask = (id: number, timeoutMs = 100): void =>
      made.take({
        id,
        method: 'tool.call',
        params: { run_id: 'r1', name: 's__t', arguments: {}, timeout_ms: timeoutMs },
      });
    return { made, ask, answers, notes };
  };
  const outcomeIn = (answer: Response | undefined): ToolOutcome | undefined =>
    answer !== undefined && 'result' in answer ? (answer.result as ToolOutcome) : undefined;
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it('clamps the time a child asks for to what its run allows', async () => {
    const { ask, notes, answers } = desk(() => Promise.resolve({ text: 'ok', is_error: false }));
    ask(1, 10 ** 9);
    await turn();
    expect(notes).toEqual(['opened 1 500', 'closed 1']);
    expect(answers).toEqual([{ id: 1, result: { text: 'ok', is_error: false } }]);
  });

  it('refuses an id that is open and a 65th call, and goes on', async () => {
    const { ask, answers } = desk(() => new Promise(() => {}));
    for (let id = 1; id <= 64; id += 1) ask(id);
    ask(64);
    ask(65);
    await turn();
    expect(answers).toHaveLength(2);
    expect(answers[0]).toMatchObject({ id: 64, error: { code: -32600 } });
    expect(outcomeIn(answers[1])).toMatchObject({ is_error: true });
  });

  it('answers nothing for a call that was cancelled, and aborts it', async () => {
    let aborted = false;
    const { made, ask, answers } = desk(
      ({ signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            aborted = true;
            resolve({ text: 'late', is_error: false });
          });
        }),
    );
    ask(1);
    made.cancel(1);
    made.cancel(1);
    await turn();
    expect({ aborted, answers, open: made.openCalls }).toEqual({ aborted: true, answers: [], open: 0 });
  });

  it('turns a tool that throws, and an answer over the frame cap, into errors the model can read', async () => {
    const thrown = desk(() => Promise.reject(new Error('broken pipe')));
    thrown.ask(1);
    const large = desk(() => Promise.resolve({ text: 'x'.repeat(20_000), is_error: false }));
    large.ask(1);
    await turn();
    expect(outcomeIn(thrown.answers[0])).toEqual({ text: 'broken pipe', is_error: true });
    expect(outcomeIn(large.answers[0])?.text).toContain('too large to hand over');
    expect(20_000).toBeLessThan(MAX_FRAME_BYTES);
  });
});

describe('the relay of logs', () => {
  it('passes known events on at a bounded rate and says how many were dropped', () => {
    const clock = new ManualClock();
    const { log, lines } = recordingLog();
    const relay = new LogRelay(log, 42, clock);
    for (let i = 0; i < 5_000; i += 1) relay.frame('info', 'loop.step', { n: i });
    expect(lines).toHaveLength(1_000);
    relay.tick();
    expect(lines.at(-1)).toMatchObject({ event: 'limit.exceeded', fields: { dropped: 4_000 } });
    clock.advance(1_000);
    for (let i = 0; i < 5_000; i += 1) relay.frame('info', 'intel.call', {});
    expect(lines.filter((line) => line.event === 'intel.call')).toHaveLength(200);
    expect(lines.at(-1)?.identity).toMatchObject({ comp: 'intel', pid: 42 });
    relay.frame('info', 'made.up', {});
    expect(lines.at(-1)).toMatchObject({ event: 'loop.error', fields: { sample: 'made.up' } });
  });
});

describe('the wakes of a session', () => {
  it('are bounded: what comes beyond is taken up by the last one', () => {
    const sent: { sequence: number; uris: string[] }[] = [];
    const wakes = new SessionWakes('r1', ({ params }) => sent.push(params));
    for (let i = 0; i < 200; i += 1) wakes.add([`u${i}`], []);
    expect(sent).toHaveLength(1);
    expect(wakes.turned(7)).toBe(false);
    while (wakes.inTurn) {
      expect(wakes.turned(sent.at(-1)?.sequence ?? 0)).toBe(true);
      wakes.pump();
    }
    expect(sent).toHaveLength(65);
    expect(new Set(sent.flatMap((wake) => wake.uris)).size).toBe(200);
  });
});

describe('the outcome of a run', () => {
  const end = { cause: null, exit: { code: 0, signal: null }, rung: 'none', error: null } as const;

  it('is crashed without a result, and keeps the first cause with one', () => {
    expect(outcomeOf(makeRun(), end, 5)).toMatchObject({
      status: 'crashed',
      cause: 'vanished',
      durationMs: 5,
    });
    const run = makeRun();
    run.result = {
      run_id: 'r1',
      status: 'completed',
      result: 'partial',
      has_usable_partial: true,
      usage: NO_USAGE,
    };
    expect(outcomeOf(run, end, 5)).toMatchObject({ status: 'completed', cause: null, error: null });
    expect(outcomeOf(run, { ...end, cause: 'lease_lost' }, 5)).toMatchObject({
      status: 'cancelled',
      cause: 'lease_lost',
      result: 'partial',
      hasUsablePartial: true,
    });
  });
});
