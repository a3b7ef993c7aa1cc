import { describe, expect, test } from 'vitest';
import { MAX_CALLS_PER_TURN, MAX_PARALLEL_CALLS } from '../../../child/loop/tool-turn.ts';
import { calls, LoopBench, type LoopSetup, says, toolCall } from './fakes.ts';

async function ending(setup: LoopSetup) {
  const bench = new LoopBench(setup);
  return { bench, end: await bench.run() };
}

describe('agent loop: tool calls', () => {
  test('calls of one turn run side by side up to the bound, results in the order of the calls', async () => {
    const names = Array.from({ length: MAX_PARALLEL_CALLS + 4 }, (_, n) => toolCall('s__a', { n }));
    const bench = new LoopBench({ turns: [calls(...names), says('done')], answer: () => undefined });
    const settled = new Set<number>();
    const end = bench.run();
    await expect.poll(() => bench.requests.length).toBe(MAX_PARALLEL_CALLS);
    for (let answered = 0; answered < names.length; answered++) {
      await expect.poll(() => bench.requests.length).toBeGreaterThan(answered);
      expect(bench.broker.inFlight).toBeLessThanOrEqual(MAX_PARALLEL_CALLS);
      // Newest first, so that answers do not come in the order of the calls.
      const open = bench.requests.filter((r) => !settled.has(r.id));
      const request = open.at(-1);
      if (request === undefined) throw new Error('nothing is open');
      settled.add(request.id);
      bench.broker.answer({
        id: request.id,
        result: { text: JSON.stringify(request.params.arguments), is_error: false },
      });
    }
    expect((await end).status).toBe('completed');
    const results = bench.transcript.messages.flatMap((m) => (m.role === 'tool' ? [m.text] : []));
    expect(results).toEqual(names.map((_, n) => `{"n":${n}}`));
  });

  test('unknown tools and arguments that do not parse become results the model can act on', async () => {
    const broken = {
      id: '',
      name: 's__a',
      arguments: { valid: false, reason: 'not valid JSON: {' },
    } as const;
    const { bench, end } = await ending({ turns: [calls('nope', broken, 's__b'), says('done')] });
    expect(end.status).toBe('completed');
    const results = bench.transcript.messages.flatMap((m) => (m.role === 'tool' ? [m] : []));
    expect(results.map((m) => m.isError)).toEqual([true, true, false]);
    expect(results[0]?.text).toContain('there is no tool "nope"; the tools are: s__a, s__b, task_refuse');
    expect(results[1]?.text).toBe('not valid JSON: {');
    expect(bench.requests).toHaveLength(1);
  });

  test('a model that only makes calls that cannot be made stalls', async () => {
    const { bench, end } = await ending({ turns: [calls('nope')] });
    expect(end.status).toBe('stalled');
    expect(bench.requests).toEqual([]);
  });

  test('calls past the bound of a turn get an error result and are not made', async () => {
    const many = Array.from({ length: MAX_CALLS_PER_TURN + 2 }, (_, n) => toolCall('s__a', { n }));
    const { bench } = await ending({ turns: [calls(...many), says('done')] });
    expect(bench.requests).toHaveLength(MAX_CALLS_PER_TURN);
    expect(bench.transcript.messages.filter((m) => m.role === 'tool' && m.isError)).toHaveLength(2);
  });

  test('self-tools go to the supervisor as self calls, and a spawned subagent is counted', async () => {
    const { bench } = await ending({
      turns: [calls('subagent_spawn'), says('done')],
      selfToolNames: ['subagent_spawn', 'not_a_self_tool'],
    });
    expect(bench.requests.map((r) => [r.method, r.params.name])).toEqual([['self.call', 'subagent_spawn']]);
    expect(bench.budget.usage.subagents).toBe(1);
    expect(bench.asked[0]?.tools.map((t) => t.name)).toEqual([
      's__a',
      's__b',
      'task_refuse',
      'subagent_spawn',
    ]);
  });

  test('a refused spawn is not counted', async () => {
    const { bench } = await ending({
      turns: [calls('subagent_spawn'), says('done')],
      selfToolNames: ['subagent_spawn'],
      answer: () => ({ text: 'refused: depth', is_error: true }),
    });
    expect(bench.budget.usage.subagents).toBe(0);
  });

  test('call ids the endpoint repeats or leaves out are made unique', async () => {
    const { bench } = await ending({
      turns: [
        calls(toolCall('s__a', { n: 1 }, 'x'), toolCall('s__a', { n: 2 }, 'x'), toolCall('s__a', { n: 3 })),
        calls(toolCall('s__b', {}, 'x')),
        says('done'),
      ],
    });
    const ids = bench.transcript.messages.flatMap((m) => (m.role === 'tool' ? [m.callId] : []));
    expect(new Set(ids).size).toBe(4);
    const asked = bench.transcript.messages.flatMap((m) =>
      m.role === 'assistant' ? m.calls.map((c) => c.id) : [],
    );
    expect(asked).toEqual(ids);
  });
});
