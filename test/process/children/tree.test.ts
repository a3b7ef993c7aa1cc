import { afterEach, describe, expect, it } from 'vitest';
import type { ToolOutcome } from '../../../protocol/frames.ts';
import { ruleOfTwo } from '../../../supervisor/children/rule-of-two.ts';
import { eventually } from '../../helpers/eventually.ts';
import { fixture, LIMITS, type Rig, rig, spec, TREE_LIMITS, tool } from './harness.ts';

type Call = readonly [string, Record<string, unknown>];

describe('the tree of agents', () => {
  let open: Rig[] = [];
  const rigged = (overrides: Parameters<typeof rig>[1] = {}): Rig => {
    const made = rig(fixture('asks-for-subagents'), overrides);
    open.push(made);
    return made;
  };
  afterEach(async () => {
    for (const one of open) await one.close();
    open = [];
  });
  const plays = async (one: Rig, calls: readonly Call[], tools = [tool('a', 'read'), tool('b', 'write')]) => {
    const outcome = await one.run(spec({ instruction: JSON.stringify(calls), tools }));
    expect(outcome.status).toBe('completed');
    return { outcome, answers: JSON.parse(outcome.result) as ToolOutcome[] };
  };

  it('a sync subagent hands over its result, and the outcome counts it', async () => {
    const one = rigged();
    const { outcome, answers } = await plays(one, [['subagent_spawn', { instruction: 'sweep the floor' }]]);
    expect(answers[0]).toMatchObject({ text: 'did: sweep the floor', is_error: false });
    expect(outcome.usage.subagents).toBe(1);
    // Subagents are the supervisor's own business: the engine hears of its root alone.
    expect(one.messages.filter((message) => message.type === 'run.settled')).toHaveLength(1);
    const spawned = one.lines.filter((line) => line.event === 'subagent.spawn');
    expect(spawned.map((line) => line.identity.agentPath)).toEqual([
      outcome.agentPath,
      `${outcome.agentPath}.1`,
    ]);
  });

  it('an async subagent is known by its handle until it has ended', async () => {
    const changed: string[] = [];
    const one = rigged({ subagentChanged: (handle) => changed.push(handle) });
    const { answers, outcome } = await plays(one, [
      ['subagent_spawn', { instruction: 'wait', disposition: 'async' }],
      ['subagent_status', { handle: '$HANDLE' }],
      ['subagent_send', { handle: '$HANDLE', message: 'hurry' }],
      ['subagent_status', { handle: '0.77' }],
      ['subagent_cancel', { handle: '$HANDLE', reason: 'enough' }],
    ]);
    const handle = `${outcome.agentPath}.1`;
    expect(answers[0]).toMatchObject({ is_error: false, structured: { handle, status: 'running' } });
    expect(answers[1]).toMatchObject({ is_error: false, structured: { handle, status: 'running' } });
    expect(answers[2]).toMatchObject({ is_error: false, structured: { handle, status: 'running' } });
    expect(answers[3]).toMatchObject({
      is_error: true,
      text: expect.stringContaining('no subagent 0.77 of yours'),
    });
    expect(answers[4]).toMatchObject({ is_error: false });
    await eventually(
      'the end of the subagent',
      () => one.supervisor.subagents.view(handle)?.status === 'cancelled',
    );
    expect(changed).toEqual([handle, handle]);
  });

  it('an async subagent answers its task, and then each message it is sent', async () => {
    const one = rigged();
    const { answers } = await plays(one, [
      ['subagent_spawn', { instruction: 'sweep', disposition: 'async' }],
      ['until_done', { handle: '$HANDLE' }],
      ['subagent_send', { handle: '$HANDLE', message: 'the corners too' }],
      ['until_done', { handle: '$HANDLE' }],
      ['subagent_spawn', { instruction: 'mop', disposition: 'detach' }],
      ['subagent_send', { handle: '$HANDLE', message: 'in vain' }],
    ]);
    expect(answers[1]).toMatchObject({ text: 'did: sweep', is_error: false });
    expect(answers[3]).toMatchObject({ text: 'heard: the corners too', is_error: false });
    expect(answers[5]).toMatchObject({ is_error: true });
    await eventually('everybody to end', () => one.supervisor.active === 0);
    expect(one.messages.filter((message) => message.type === 'session.turn')).toEqual([]);
  });

  it('subagents of an agent that has ended are stopped, but for detached ones', async () => {
    const one = rigged();
    const { outcome } = await plays(one, [
      ['subagent_spawn', { instruction: 'wait', disposition: 'async' }],
      ['subagent_spawn', { instruction: 'wait', disposition: 'detach' }],
    ]);
    const view = (n: number) => one.supervisor.subagents.view(`${outcome.agentPath}.${n}`);
    await eventually('the end of the attached one', () => view(1)?.status === 'cancelled');
    expect(view(2)?.status).toBe('running');
    expect(one.supervisor.active).toBe(1);
  });

  it('a stop takes the whole tree along', async () => {
    const one = rigged();
    const deep: Call[] = [['subagent_spawn', { instruction: 'wait' }]];
    const run = spec({
      instruction: JSON.stringify([['subagent_spawn', { instruction: JSON.stringify(deep) }]]),
    });
    await one.begin(run);
    await eventually(
      'three agents',
      () => one.supervisor.inventory().filter((a) => a.pid !== null).length === 3,
    );
    one.supervisor.stop(run.runId, 'lease_lost');
    expect(await one.settled(run.runId)).toMatchObject({ status: 'cancelled', cause: 'lease_lost' });
    await eventually('an empty tree', () => one.supervisor.active === 0);
    const ends = one.lines.filter((line) => line.event === 'subagent.exit');
    expect(ends.map((line) => line.fields.cause).sort()).toEqual([
      'lease_lost',
      'parent_ended',
      'parent_ended',
    ]);
  });

  it('the depth is capped, in words a model can act on', async () => {
    const one = rigged({ limits: { ...TREE_LIMITS, maxDepth: 1 } });
    const deeper = JSON.stringify([['subagent_spawn', { instruction: 'too deep' }]]);
    const { answers } = await plays(one, [['subagent_spawn', { instruction: deeper }]]);
    const inner = JSON.parse(answers[0]?.text ?? '') as ToolOutcome[];
    expect(inner[0]).toMatchObject({ is_error: true, text: expect.stringContaining('do the task yourself') });
    expect(one.metrics.counted('agent_refusals_total', { reason: 'depth' })).toBe(1);
    expect(one.metrics.counted('agent_limit_exceeded_total', { limit: 'depth' })).toBe(1);
  });

  it('children of one node and the rate of starts are capped', async () => {
    const few = rigged({ limits: { ...TREE_LIMITS, maxChildren: 2 } });
    const waiting: Call = ['subagent_spawn', { instruction: 'wait', disposition: 'async' }];
    const narrow = await plays(few, [waiting, waiting, waiting]);
    expect(narrow.answers.map((answer) => answer.is_error)).toEqual([false, false, true]);
    const many = rigged({ limits: { ...TREE_LIMITS, maxChildren: 64 } });
    const burst = await plays(
      many,
      Array.from({ length: 12 }, () => waiting),
    );
    expect(burst.answers.filter((answer) => answer.is_error).length).toBeGreaterThan(0);
    expect(many.metrics.counted('agent_refusals_total', { reason: 'rate' })).toBeGreaterThan(0);
  });

  it('a subagent gets a subset of the tools and of the limits of its parent', async () => {
    const one = rigged();
    const { answers } = await plays(one, [
      ['subagent_spawn', { instruction: 'x', tools: ['a__read', 'c__steal'] }],
      ['subagent_spawn', { instruction: 'x', tools: ['a__read'], max_tokens: 99_999_999, max_steps: 3 }],
      ['subagent_spawn', { tools: [] }],
    ]);
    expect(answers[0]).toMatchObject({ is_error: true, text: expect.stringContaining('c__steal') });
    expect(answers[1]).toMatchObject({ is_error: false });
    expect(answers[2]).toMatchObject({ is_error: true, text: expect.stringContaining('instruction') });
  });

  it('a tree that has spent its tokens is stopped as exhausted', async () => {
    const spender = rig(fixture('spends'), { limits: { ...TREE_LIMITS, treeTokens: 100 } });
    open.push(spender);
    const run = spec({ instruction: '101' });
    const outcome = await spender.run(run);
    expect(outcome).toMatchObject({ status: 'exhausted_tokens', cause: 'tree_tokens' });
    expect(spender.metrics.counted('agent_limit_exceeded_total', { limit: 'tree_tokens' })).toBe(1);
  });

  it('a run whose tools combine untrusted input, sensitive data and a way out is refused at start', async () => {
    const tags: Record<string, readonly string[]> = {
      a: ['untrusted_input'],
      b: ['sensitive'],
      c: ['egress'],
    };
    const one = rigged({ forbidden: (tools) => ruleOfTwo(tools, (server) => tags[server] ?? []) });
    const all = [tool('a', 'read'), tool('b', 'look'), tool('c', 'send')];
    const outcome = await one.run(spec({ tools: all }));
    expect(outcome).toMatchObject({
      status: 'refused',
      cause: null,
      exit: null,
      error: { type: 'RuleOfTwo' },
    });
    expect(outcome.error?.message).toContain('untrusted_input (a), sensitive (b), egress (c)');
    expect(one.metrics.counted('agent_refusals_total', { reason: 'trifecta' })).toBe(1);
    expect(await one.run(spec({ tools: all.slice(1) }))).toMatchObject({ status: 'completed' });
  });

  it('a tool outside the scope of a run is refused and named', async () => {
    let called = 0;
    const one = rig(fixture('long-tool-call'), {
      callTool: () => {
        called += 1;
        return Promise.resolve({ text: 'leaked', is_error: false });
      },
    });
    open.push(one);
    const outcome = await one.run(spec({ tools: [tool('fast', 'work')], limits: LIMITS }));
    expect(outcome.result).toBe('there is no tool slow__work for this run; it has: fast__work');
    expect(called).toBe(0);
  });

  it('the calls of a child that dies are cancelled', async () => {
    let aborted = false;
    let called = false;
    const one = rig(fixture('long-tool-call'), {
      callTool: ({ signal }) =>
        new Promise((resolve) => {
          called = true;
          signal.addEventListener('abort', () => {
            aborted = true;
            resolve({ text: '', is_error: true });
          });
        }),
    });
    open.push(one);
    const run = spec({ tools: [tool('slow', 'work')] });
    const { pid } = await one.begin(run);
    await eventually('the call', () => called);
    process.kill(pid, 'SIGKILL');
    await one.settled(run.runId);
    expect(aborted).toBe(true);
  });
});
