import { describe, expect, test } from 'vitest';
import { LOOP_REPEATS, STALL_TURNS } from '../../../child/loop/stop-conditions.ts';
import { AgentdError } from '../../../protocol/errors.ts';
import { calls, LoopBench, type LoopSetup, says, toolCall } from './fakes.ts';

const PERSON = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };

async function ending(setup: LoopSetup) {
  const bench = new LoopBench(setup);
  return { bench, end: await bench.run() };
}

describe('agent loop: how a task ends', () => {
  test('an answer without calls completes it', async () => {
    const { bench, end } = await ending({ turns: [calls('s__a'), says('  the result ')] });
    expect(end).toMatchObject({ status: 'completed', result: 'the result', hasUsablePartial: false });
    expect(bench.progress).toEqual(['step', 'model', 'step', 'model']);
    expect(bench.logged).toEqual([
      ...['loop.step', 'intel.call', 'intel.result', 'tool.call', 'tool.result'],
      ...['loop.step', 'intel.call', 'intel.result'],
    ]);
  });

  test('task_refuse ends it as refused, and nothing else of that turn is done', async () => {
    const { bench, end } = await ending({
      turns: [calls(toolCall('s__a', {}), toolCall('task_refuse', { reason: 'no such document' }))],
    });
    expect(end).toMatchObject({ status: 'refused', result: 'no such document', hasUsablePartial: false });
    expect(bench.requests).toEqual([]);
  });

  test('an answer the provider declines to give is a refusal', async () => {
    const { end } = await ending({ turns: [says('I cannot help with that', { stop: 'declined' })] });
    expect(end).toMatchObject({ status: 'refused', result: 'I cannot help with that' });
  });

  test('the step budget is checked before each call', async () => {
    const { bench, end } = await ending({
      turns: [1, 2, 3, 4].map((n) => calls(toolCall('s__a', { n }))),
      limits: { max_steps: 3 },
    });
    expect(end).toMatchObject({ status: 'exhausted_steps', result: '', hasUsablePartial: false });
    expect(bench.asked).toHaveLength(3);
    expect(bench.budget.usage.steps).toBe(3);
    expect(bench.asked[2]?.messages.at(-1)).toMatchObject({
      role: 'user',
      text: expect.stringContaining('last step'),
    });
  });

  test('the token budget is recorded after each call, and what was said before is a usable partial', async () => {
    const usage = { tokensIn: 400, tokensOut: 200 };
    const { bench, end } = await ending({
      turns: [1, 2, 3].map((n) => ({ ...calls(toolCall('s__a', { n })), text: `found ${n}`, usage })),
    });
    expect(end).toMatchObject({ status: 'exhausted_tokens', result: 'found 2', hasUsablePartial: true });
    expect(bench.budget.usage).toEqual({ tokens_in: 800, tokens_out: 400, steps: 2, subagents: 0 });
  });

  test('tokens an endpoint does not report are not guessed', async () => {
    const { bench } = await ending({ turns: [says('done')] });
    expect(bench.budget.usage).toMatchObject({ tokens_in: 0, tokens_out: 0, steps: 1 });
  });

  test('a final answer that overshoots the token budget still completes', async () => {
    const { end } = await ending({ turns: [says('done', { usage: { tokensIn: 5000, tokensOut: 1 } })] });
    expect(end.status).toBe('completed');
  });

  test('the deadline on the clock ends it before the next call', async () => {
    const bench = new LoopBench({
      turns: [
        () => {
          bench.now = 1001;
          return calls('s__a');
        },
      ],
    });
    expect((await bench.run()).status).toBe('deadline');
    expect(bench.asked).toHaveLength(1);
  });

  test('a stop for the deadline interrupts a model that does not hear it', async () => {
    const bench = new LoopBench({ turns: [() => new Promise(() => undefined)] });
    const end = bench.run();
    bench.control.apply({ kind: 'stop', request: { kind: 'deadline' } });
    expect((await end).status).toBe('deadline');
  });

  test('a cancel interrupts a tool call, which is cancelled at the supervisor', async () => {
    const bench = new LoopBench({ turns: [calls('s__a')], answer: () => undefined });
    const end = bench.run();
    await expect.poll(() => bench.requests.length).toBe(1);
    bench.control.apply({ kind: 'stop', request: { kind: 'cancelled', reason: 'x' } });
    expect((await end).status).toBe('cancelled');
    expect(bench.sent).toContainEqual({ method: 'request.cancel', params: { id: bench.requests[0]?.id } });
    expect(bench.broker.inFlight).toBe(0);
  });

  test('the same call over and over is a loop, and the model is told first', async () => {
    const { bench, end } = await ending({ turns: [calls(toolCall('s__a', { x: 1, y: 2 }))] });
    expect(end).toMatchObject({ status: 'loop_detected', hasUsablePartial: false });
    expect(bench.requests).toHaveLength(LOOP_REPEATS);
    expect(
      bench.transcript.messages.filter((m) => m.role === 'user' && m.text.includes('same calls')),
    ).toHaveLength(1);
  });

  test('the order of keys does not hide a loop', async () => {
    const { end } = await ending({
      turns: [
        ...Array.from({ length: 9 }, (_, n) =>
          calls(toolCall('s__a', n % 2 === 0 ? { x: 1, y: { b: 1, a: 2 } } : { y: { a: 2, b: 1 }, x: 1 })),
        ),
        says('never'),
      ],
    });
    expect(end.status).toBe('loop_detected');
  });

  test('turns that neither call nor end are nudged, then stall with what was said', async () => {
    const { bench, end } = await ending({ turns: [says('still thinking', { stop: 'cut_off' })] });
    expect(end).toMatchObject({ status: 'stalled', result: 'still thinking', hasUsablePartial: true });
    expect(bench.asked).toHaveLength(STALL_TURNS);
  });

  test('empty answers stall without a partial', async () => {
    const { end } = await ending({ turns: [says('')] });
    expect(end).toMatchObject({ status: 'stalled', result: '', hasUsablePartial: false });
  });

  test('a model that fails crashes it, and says whether an endpoint was to blame', async () => {
    const failing = (code: 'INTELLIGENCE_AUTH' | 'INTELLIGENCE_REJECTED') => () => {
      throw new AgentdError(code, 'no model endpoint can be used');
    };
    const auth = await ending({ turns: [failing('INTELLIGENCE_AUTH')] });
    expect(auth.end).toMatchObject({
      status: 'crashed',
      intelligenceFailed: true,
      error: { type: 'INTELLIGENCE_AUTH' },
    });
    const rejected = await ending({ turns: [failing('INTELLIGENCE_REJECTED')] });
    expect(rejected.end).toMatchObject({ status: 'crashed', intelligenceFailed: false });
    expect(rejected.bench.logged).toContain('loop.error');
  });
});

describe('agent loop: output contract', () => {
  test('an answer that satisfies it is the result, as compact JSON', async () => {
    const { end } = await ending({ turns: [says('```json\n{ "name": "x" }\n```')], contract: PERSON });
    expect(end).toMatchObject({ status: 'completed', result: '{"name":"x"}' });
  });

  test('one that does not gets a chance to repair it', async () => {
    const { bench, end } = await ending({
      turns: [says('Sure! It is x.'), says('{"name":"x"}')],
      contract: PERSON,
    });
    expect(end.status).toBe('completed');
    expect(bench.asked[1]?.messages.at(-1)).toMatchObject({
      role: 'user',
      text: expect.stringContaining('does not satisfy the output contract: the answer is not JSON'),
    });
  });

  test('after two repairs it stalls, and what does not satisfy the contract is no partial', async () => {
    const { bench, end } = await ending({ turns: [says('{"name":1}')], contract: PERSON });
    expect(end).toMatchObject({ status: 'stalled', result: '', hasUsablePartial: false });
    expect(bench.asked).toHaveLength(3);
  });

  test('an answer too large for a result has to be made smaller', async () => {
    const { bench, end } = await ending({
      turns: [says(JSON.stringify({ name: 'x'.repeat(70_000) })), says('{"name":"x"}')],
      contract: PERSON,
    });
    expect(end).toMatchObject({ status: 'completed', result: '{"name":"x"}' });
    expect(bench.asked[1]?.messages.at(-1)).toMatchObject({
      text: expect.stringContaining('may have 65536'),
    });
  });
});

describe('agent loop: pause and wind-down', () => {
  test('a pause during a model call keeps the answer, and its tool calls wait for the resume', async () => {
    const bench = new LoopBench({
      turns: [
        () => {
          bench.control.apply({ kind: 'pause' });
          return calls('s__a');
        },
        says('done'),
      ],
    });
    const end = bench.run();
    await expect.poll(() => bench.progress).toContain('paused');
    expect(bench.requests).toEqual([]);
    bench.control.apply({ kind: 'resume' });
    expect((await end).status).toBe('completed');
    expect(bench.requests).toHaveLength(1);
    expect(bench.progress).toEqual(['step', 'model', 'paused', 'resumed', 'step', 'model']);
  });

  test('a final answer is delivered even while paused', async () => {
    const bench = new LoopBench({
      turns: [
        () => {
          bench.control.apply({ kind: 'pause' });
          return says('done');
        },
      ],
    });
    expect((await bench.run()).status).toBe('completed');
  });

  test('a paused run can be cancelled', async () => {
    const bench = new LoopBench({ turns: [says('never')] });
    bench.control.apply({ kind: 'pause' });
    const end = bench.run();
    bench.control.apply({ kind: 'stop', request: { kind: 'cancelled', reason: 'x' } });
    expect((await end).status).toBe('cancelled');
    expect(bench.asked).toEqual([]);
  });

  test('a wind-down finishes the turn at hand, calls included, then ends as cancelled', async () => {
    const bench = new LoopBench({
      turns: [
        () => {
          bench.control.apply({ kind: 'wind_down' });
          return { ...calls('s__a'), text: 'so far' };
        },
      ],
    });
    expect(await bench.run()).toMatchObject({
      status: 'cancelled',
      result: 'so far',
      hasUsablePartial: true,
    });
    expect(bench.requests).toHaveLength(1);
    expect(bench.asked).toHaveLength(1);
  });

  test('a wind-down lets a paused run end', async () => {
    const bench = new LoopBench({ turns: [says('never')] });
    bench.control.apply({ kind: 'pause' });
    const end = bench.run();
    bench.control.apply({ kind: 'wind_down' });
    expect((await end).status).toBe('cancelled');
  });
});
