import { describe, expect, it } from 'vitest';
import { type Given, load, RUNNABLE, refusal } from '../../helpers/load-config.ts';

const reactive = { '--mode': 'reactive', '--mcp': ['s=stdio:x'], '--subscribe': ['a://b'] };
const withFile = (text: string): Given => ({
  flags: { ...RUNNABLE, '--config': ['a.yaml'] },
  files: { 'a.yaml': text },
});

describe('a configuration is accepted with a warning for', () => {
  it.each([
    ['a drain of 30 s and no grace known', { '--drain-timeout': '30s' }, /drain may take 30s.*--pod-grace/],
    ['a run report in reactive mode', { ...reactive, '--report-file': 'r.json' }, /no run report is written/],
    ['a clock in mode once', { '--interval': '5s' }, /no effect in once mode/],
    ['no model name', { '--intelligence': 'https://models.example' }, /no model is named/],
  ] as const)('%s', async (_name, flags, message) => {
    const { warnings } = await load({ flags: { ...RUNNABLE, ...flags } });
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(message);
  });
});

describe('the shard', () => {
  it.each([
    [{ AGENT_POD_NAME: 'worker-2' }, 2],
    [{ HOSTNAME: 'agentd@1.service' }, 1],
    [{ HOSTNAME: 'agentd@0' }, 0],
    [{ AGENT_POD_NAME: '', HOSTNAME: 'worker-02' }, 2],
  ])('auto/3 takes its number from %j', async (env, index) => {
    const { config } = await load({ flags: { ...RUNNABLE, '--shard': 'auto/3' }, env });
    expect(config.shard).toEqual({ index, count: 3, timer: 'shard0' });
  });
});

describe('a schema mistake', () => {
  it('is located, all of them at once, with the key that was meant', async () => {
    const error = await refusal(
      withFile(
        [
          'limits:',
          '  max_step: 5',
          '  deadline: soon',
          'instruction: hi',
          'routes:',
          '  - match: a://b',
          '    claim: {server: s, tll: 5s}',
          '  - server: s',
        ].join('\n'),
      ),
    );
    expect(error.message.split('; ')).toEqual([
      'a.yaml:2:3: limits: unknown key "max_step" (did you mean max_steps?)',
      'a.yaml:3:13: limits.deadline: expected a duration such as 250ms, 30s, 5m, 4h or a number of seconds, got "soon"',
      'a.yaml:4:1: unknown key "instruction" (did you mean agent.instruction?)',
      'a.yaml:7:24: routes[0].claim: unknown key "tll" (did you mean ttl?)',
      'a.yaml:8:5: routes[1].match: is required',
      'a.yaml:7:21: the claim of route a://b names the MCP server s, which is not declared',
    ]);
  });

  it('inside one of several forms is located inside it', async () => {
    const error = await refusal({
      flags: { '--instruction': 'x', '--config': ['a.yaml'] },
      files: { 'a.yaml': 'intelligence: {endpoints: [{url: "script:final", tokn: x}]}' },
    });
    expect(error.message).toBe(
      'a.yaml:1:50: intelligence.endpoints[0]: unknown key "tokn" (did you mean token?)',
    );
  });
});
