import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Config } from '../../../supervisor/config/config.ts';
import { load, RUNNABLE, refusal } from '../../helpers/load-config.ts';

/** A key, how each layer writes it, and where it ends up. */
interface Probe {
  readonly key: string;
  readonly flag: string;
  readonly variable: string;
  readonly fallback: unknown;
  readonly values: readonly [string, unknown][];
  read(config: Config): unknown;
}

const PROBES: readonly Probe[] = [
  {
    key: 'limits.max_steps',
    flag: '--max-steps',
    variable: 'AGENT_MAX_STEPS',
    fallback: 50,
    values: [
      ['7', 7],
      ['8', 8],
      ['9', 9],
      ['10', 10],
    ],
    read: ({ limits }) => limits.maxSteps,
  },
  {
    key: 'lifecycle.drain_timeout',
    flag: '--drain-timeout',
    variable: 'AGENT_DRAIN_TIMEOUT',
    fallback: 25_000,
    values: [
      ['1s', 1_000],
      ['500ms', 500],
      ['3', 3_000],
      ['20s', 20_000],
    ],
    read: ({ lifecycle }) => lifecycle.drainTimeoutMs,
  },
  {
    key: 'observability.log.level',
    flag: '--log-level',
    variable: 'AGENT_LOG_LEVEL',
    fallback: 'info',
    values: [
      ['debug', 'debug'],
      ['warn', 'warn'],
      ['error', 'error'],
      ['trace', 'trace'],
    ],
    read: ({ observability }) => observability.logLevel,
  },
  {
    key: 'shard.index',
    flag: '--shard',
    variable: 'AGENT_SHARD',
    fallback: 0,
    values: [
      ['1/9', 1],
      ['2/9', 2],
      ['3/9', 3],
      ['4/9', 4],
    ],
    read: ({ shard }) => shard.index,
  },
];

/** `a.b.c: value` as a file. */
function yaml(key: string, value: string): string {
  const steps = key.split('.');
  return `${steps.map((step, depth) => '  '.repeat(depth) + step + ':').join('\n')} "${value}"\n`;
}

describe('the layers', () => {
  it('decide every key by itself: built-in < file < later file < environment < flag', async () => {
    const layers = fc.record({
      probe: fc.constantFrom(...PROBES),
      set: fc.tuple(fc.boolean(), fc.boolean(), fc.boolean(), fc.boolean()),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(layers, { minLength: 1, maxLength: 1 }),
        fc.boolean(),
        async ([given], empty) => {
          if (given === undefined) return;
          const { probe, set } = given;
          const text = (at: number): string => probe.values[at]?.[0] ?? '';
          const { config } = await load({
            files: {
              'a.yaml': set[0] ? yaml(probe.key, text(0)) : 'limits:\n',
              'b.yaml': set[1] ? yaml(probe.key, text(1)) : '',
            },
            env: set[2] ? { [probe.variable]: text(2) } : empty ? { [probe.variable]: '' } : {},
            flags: {
              ...RUNNABLE,
              '--config': ['a.yaml', 'b.yaml'],
              ...(set[3] ? { [probe.flag]: text(3) } : {}),
            },
          });
          const highest = set.lastIndexOf(true);
          expect(probe.read(config)).toBe(highest === -1 ? probe.fallback : probe.values[highest]?.[1]);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('merge files key by key and replace lists', async () => {
    const { config } = await load({
      flags: { ...RUNNABLE, '--config': ['a.yaml', 'b.yaml'] },
      files: {
        'a.yaml':
          'limits: {max_steps: 1, max_depth: 2}\nmcp: {servers: [{name: a, command: [x]}, {name: b, command: [y]}]}\n',
        'b.yaml': 'limits: {max_steps: 3}\nmcp: {servers: [{name: c, command: [z]}]}\n',
      },
    });
    expect(config.limits).toMatchObject({ maxSteps: 3, maxDepth: 2 });
    expect(config.mcpServers.map(({ name }) => name)).toEqual(['c']);
  });

  it('read AGENT_CONFIG when no --config is given, and only then', async () => {
    const files = { 'a.yaml': 'limits: {max_steps: 1}', 'b.yaml': 'limits: {max_depth: 2}' };
    const both = await load({ flags: RUNNABLE, env: { AGENT_CONFIG: 'a.yaml, b.yaml' }, files });
    expect(both.config.limits).toMatchObject({ maxSteps: 1, maxDepth: 2 });
    const one = await load({
      flags: { ...RUNNABLE, '--config': ['b.yaml'] },
      env: { AGENT_CONFIG: 'a.yaml' },
      files,
    });
    expect(one.config.limits).toMatchObject({ maxSteps: 50, maxDepth: 2 });
  });

  it('prefer AGENT_INSTRUCTION to INSTRUCTION, and a later layer to an instruction file', async () => {
    const flags = { '--intelligence': 'script:final' };
    const files = { 'a.yaml': 'agent: {instruction_file: task.md}', 'task.md': '# From the file\n' };
    const named = await load({ flags, env: { AGENT_INSTRUCTION: 'one', INSTRUCTION: 'two' } });
    expect(named.config.instruction).toBe('one');
    const older = await load({
      flags: { ...flags, '--config': ['a.yaml'] },
      env: { INSTRUCTION: 'two' },
      files,
    });
    expect(older.config.instruction).toBe('two');
    const file = await load({ flags: { ...flags, '--config': ['a.yaml'] }, files });
    expect(file.config.instruction).toBe('# From the file');
  });

  it('say where each key came from', async () => {
    const { sources } = await load({
      flags: { ...RUNNABLE, '--config': ['a.yaml'] },
      env: { AGENT_MAX_DEPTH: '3' },
      files: { 'a.yaml': 'limits:\n  max_steps: 5\nshard: 1/2\n' },
    });
    expect(sources).toMatchObject({
      'limits.max_steps': 'a.yaml:2:14',
      'limits.max_depth': 'AGENT_MAX_DEPTH',
      'agent.instruction': '--instruction',
      'shard.index': 'a.yaml:3:8',
    });
  });

  it('take servers from AGENT_MCP_CONFIG in either shape', async () => {
    const own = 'servers:\n  - {name: a, endpoint: "https://a.example/mcp"}\n';
    const shared = JSON.stringify({
      mcpServers: {
        b: { command: 'npx', args: ['-y', 'srv'], env: { A: '1' } },
        c: { type: 'http', url: 'https://c.example/mcp', headers: { Authorization: 'Bearer {{secret:T}}' } },
      },
    });
    const first = await load({
      flags: RUNNABLE,
      env: { AGENT_MCP_CONFIG: 'm.yaml' },
      files: { 'm.yaml': own },
    });
    expect(first.config.mcpServers).toMatchObject([{ name: 'a', transport: { kind: 'http' } }]);
    const second = await load({
      flags: RUNNABLE,
      env: { AGENT_MCP_CONFIG: 'm.json', T: 'token' },
      files: { 'm.json': shared },
    });
    expect(second.config.mcpServers).toMatchObject([
      { name: 'b', transport: { kind: 'stdio', command: ['npx', '-y', 'srv'], env: { A: '1' } } },
      { name: 'c', transport: { kind: 'http', url: 'https://c.example/mcp' } },
    ]);
  });

  it('locate a mistake inside a file of AGENT_MCP_CONFIG', async () => {
    const error = await refusal({
      flags: RUNNABLE,
      env: { AGENT_MCP_CONFIG: 'm.yaml' },
      files: { 'm.yaml': 'mcpServers:\n  b:\n    url: nonsense\n' },
    });
    expect(error.message).toContain('m.yaml:3:10: MCP server b has an address');
  });

  it('warn of a variable that is one slip away from a known one', async () => {
    const { warnings } = await load({
      flags: RUNNABLE,
      env: { AGENT_MAX_STEP: '5', AGENT_POD_NAME: 'a-1', AGENT_HOME: '/' },
    });
    expect(warnings).toEqual(['the variable AGENT_MAX_STEP is not read (did you mean AGENT_MAX_STEPS?)']);
  });

  it('name the instance after agent.name, then the pod, then the host', async () => {
    const env = { AGENT_POD_NAME: 'pod-1', HOSTNAME: 'host' };
    const instance = async (given: Parameters<typeof load>[0]): Promise<string> =>
      (await load(given)).config.identity.instance;
    expect(
      await instance({
        flags: { ...RUNNABLE, '--config': ['a.yaml'] },
        env,
        files: { 'a.yaml': 'agent: {name: mine}' },
      }),
    ).toBe('mine');
    expect(await instance({ flags: RUNNABLE, env })).toBe('pod-1');
    expect(await instance({ flags: RUNNABLE, env: { ...env, AGENT_POD_NAME: '' } })).toBe('host');
    expect(await instance({ flags: RUNNABLE })).toBe('agentd');
  });
});

describe('defaults that depend on the situation', () => {
  const reactive = { ...RUNNABLE, '--mcp': ['s=stdio:x'], '--subscribe': ['a://b'] };

  it('are the mode of the verb, the warm child and the log format', async () => {
    const { config } = await load({ flags: reactive, defaultMode: 'reactive', terminal: true });
    expect(config.mode).toBe('reactive');
    expect(config.limits.warmChildren).toBe(1);
    expect(config.observability.logFormat).toBe('text');
    const once = await load({ flags: RUNNABLE });
    expect(once.config.mode).toBe('once');
    expect(once.config.limits.warmChildren).toBe(0);
    expect(once.config.observability.logFormat).toBe('json');
  });

  it('give way to what is said', async () => {
    const { config } = await load({
      flags: { ...reactive, '--warm-children': '3', '--log-format': 'json', '--mode': 'reactive' },
      terminal: true,
    });
    expect(config.limits.warmChildren).toBe(3);
    expect(config.observability.logFormat).toBe('json');
  });
});
