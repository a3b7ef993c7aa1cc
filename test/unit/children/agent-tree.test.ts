import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ToolDescriptor } from '../../../protocol/frames.ts';
import { AgentTree, type Grant, type SpawnRequest } from '../../../supervisor/children/agent-tree.ts';
import { ruleOfTwo } from '../../../supervisor/children/rule-of-two.ts';

const tool = (server: string, name: string): ToolDescriptor => ({
  name: `${server}__${name}`,
  server,
  tool: name,
  description: '',
  input_schema: {},
});
const LIMITS = { max_steps: 10, max_tokens: 1_000, deadline_ms: 60_000, tool_timeout_ms: 1_000 };
const TOOLS = [tool('a', 'x'), tool('a', 'y'), tool('b', 'z')];
const ROOT = { tools: TOOLS, limits: LIMITS };
const CAPS = {
  maxDepth: 3,
  maxChildren: 3,
  maxTotal: 12,
  treeTokens: 5_000,
  spawnRate: { burst: 1_000, perSecond: 1_000 },
};

function wanted(overrides: Partial<SpawnRequest> = {}): SpawnRequest {
  return {
    instruction: 'x',
    tools: null,
    disposition: 'sync',
    maxSteps: null,
    maxTokens: null,
    deadlineMs: null,
    outputContract: null,
    ...overrides,
  };
}

function granted(answer: ReturnType<AgentTree['request']>): Grant {
  if (!answer.granted) throw new Error(answer.text);
  return answer;
}

describe('the gate of the tree', () => {
  it('numbers roots and subagents, and calls the root of a one-shot run "0"', () => {
    const tree = new AgentTree(CAPS, 0);
    expect(tree.addRoot(ROOT, true, 0).path).toBe('0');
    const root = tree.addRoot(ROOT, false, 0).path;
    expect(root).toBe('0.1');
    expect(granted(tree.request(root, wanted(), 0))).toMatchObject({ path: '0.1.1', depth: 1, root });
    tree.remove('0.1.1');
    // A number is never given twice: it may still be on record.
    expect(granted(tree.request(root, wanted(), 0)).path).toBe('0.1.2');
  });

  it('clamps limits to what the parent and the tree have left', () => {
    const tree = new AgentTree({ ...CAPS, treeTokens: 1_500 }, 0);
    const root = tree.addRoot(ROOT, false, 0).path;
    tree.report(root, 900);
    const grant = granted(
      tree.request(root, wanted({ maxTokens: 10 ** 9, maxSteps: 99, deadlineMs: 10 ** 9 }), 50_000),
    );
    expect(grant.limits).toEqual({
      max_steps: 10,
      max_tokens: 600,
      deadline_ms: 10_000,
      tool_timeout_ms: 1_000,
    });
    expect(granted(tree.request(root, wanted({ maxTokens: 5, maxSteps: 2 }), 0)).limits).toMatchObject({
      max_tokens: 5,
      max_steps: 2,
    });
  });

  it('counts the tokens of agents that have ended', () => {
    const tree = new AgentTree({ ...CAPS, treeTokens: 100 }, 0);
    const root = tree.addRoot(ROOT, false, 0).path;
    const child = granted(tree.request(root, wanted(), 0)).path;
    expect(tree.report(child, 60)).toBe(false);
    tree.remove(child);
    expect(tree.report(root, 40)).toBe(false);
    expect(tree.request(root, wanted(), 0)).toMatchObject({
      granted: false,
      reason: 'budget',
      limit: 'tree_tokens',
    });
    // Told once, when it is passed.
    expect(tree.report(root, 41)).toBe(true);
    expect(tree.report(root, 42)).toBe(false);
  });

  it('lets nothing grow in a tree that is being torn down', () => {
    const tree = new AgentTree(CAPS, 0);
    const root = tree.addRoot(ROOT, false, 0).path;
    tree.tearDown(root);
    expect(tree.request(root, wanted(), 0)).toMatchObject({ granted: false, reason: 'other', limit: null });
    expect(tree.request('0.9', wanted(), 0)).toMatchObject({ granted: false });
  });

  it('refuses when no time is left', () => {
    const tree = new AgentTree(CAPS, 0);
    const root = tree.addRoot(ROOT, false, 0).path;
    expect(tree.request(root, wanted(), 60_000)).toMatchObject({ granted: false, reason: 'budget' });
  });

  it('refills the rate of starts with time', () => {
    const tree = new AgentTree(
      { ...CAPS, maxChildren: 100, maxTotal: 100, spawnRate: { burst: 2, perSecond: 2 } },
      0,
    );
    const root = tree.addRoot(ROOT, false, 0).path;
    const ask = (now: number): boolean => tree.request(root, wanted(), now).granted;
    expect([ask(0), ask(0), ask(0), ask(499), ask(500), ask(501), ask(1_000)]).toEqual([
      true,
      true,
      false,
      false,
      true,
      false,
      true,
    ]);
  });

  it('names descendants deepest first', () => {
    const tree = new AgentTree(CAPS, 0);
    const root = tree.addRoot(ROOT, false, 0).path;
    const child = granted(tree.request(root, wanted(), 0)).path;
    const grandchild = granted(tree.request(child, wanted(), 0)).path;
    expect(tree.descendants(root)).toEqual([grandchild, child]);
    expect(tree.ancestors(grandchild)).toEqual([child, root]);
    expect(tree.wholeTree(child)).toEqual([grandchild, child, root]);
    expect({ depth: tree.depth, breadth: tree.breadth, size: tree.size }).toEqual({
      depth: 2,
      breadth: 1,
      size: 3,
    });
  });

  it('never exceeds a cap and never widens a scope, whatever is asked', () => {
    const act = fc.record({
      kind: fc.constantFrom('spawn', 'spawn', 'spawn', 'remove', 'report', 'root'),
      who: fc.nat(),
      tools: fc.option(fc.subarray(['a__x', 'a__y', 'b__z', 'c__q']), { nil: null }),
      number: fc.integer({ min: 1, max: 3_000 }),
    });
    fc.assert(
      fc.property(fc.array(act, { maxLength: 60 }), (acts) => {
        const tree = new AgentTree(CAPS, 0);
        const live = new Map<string, Grant & { parent: string | null }>();
        const pick = (n: number): string => [...live.keys()][n % Math.max(1, live.size)] ?? '';
        for (const { kind, who, tools, number } of acts) {
          const path = pick(who);
          if (kind === 'root' || live.size === 0) {
            if (live.size >= CAPS.maxTotal) continue;
            const grant = tree.addRoot(ROOT, false, 0);
            live.set(grant.path, { ...grant, parent: null });
          } else if (kind === 'remove') {
            // The engine removes leaves before their parents.
            if ([...live.values()].some((node) => node.parent === path)) continue;
            tree.remove(path);
            live.delete(path);
          } else if (kind === 'report') tree.report(path, number);
          else {
            const parent = live.get(path);
            const answer = tree.request(path, wanted({ tools, maxTokens: number }), 0);
            if (!answer.granted || parent === undefined) continue;
            const names = new Set(parent.tools.map((one) => one.name));
            expect(answer.tools.every((one) => names.has(one.name))).toBe(true);
            expect(answer.limits.max_tokens).toBeLessThanOrEqual(parent.limits.max_tokens);
            expect(answer.depth).toBeLessThanOrEqual(CAPS.maxDepth);
            expect(live.has(answer.path)).toBe(false);
            live.set(answer.path, { ...answer, parent: path });
            const siblings = [...live.values()].filter((node) => node.parent === path).length;
            expect(siblings).toBeLessThanOrEqual(CAPS.maxChildren);
            expect(live.size).toBeLessThanOrEqual(CAPS.maxTotal);
          }
          expect(tree.size).toBe(live.size);
        }
      }),
    );
  });

  it('two of the three tags may meet in one run, three may not', () => {
    const tags: Record<string, readonly string[]> = { a: ['untrusted_input', 'sensitive'], b: ['egress'] };
    const tagsOf = (server: string): readonly string[] => tags[server] ?? [];
    expect(ruleOfTwo([tool('a', 'x')], tagsOf)).toBeNull();
    expect(ruleOfTwo([tool('b', 'x'), tool('c', 'x')], tagsOf)).toBeNull();
    expect(ruleOfTwo([tool('a', 'x'), tool('b', 'x')], tagsOf)).toContain('egress (b)');
  });
});
