import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FlagValues } from '../../../supervisor/config/flag-layers.ts';
import { OTHER_FLAGS, SETTINGS } from '../../../supervisor/config/settings.ts';
import { load, RUNNABLE, refusal } from '../../helpers/load-config.ts';
import { runVerb } from '../../helpers/run-verb.ts';

const reactive: FlagValues = {
  ...RUNNABLE,
  '--mode': 'reactive',
  '--mcp': ['inbox=http://127.0.0.1:1/mcp', 'coord=http://127.0.0.1:2/mcp'],
};

describe('${NAME} in the value of a flag', () => {
  it('is replaced in every part of a server, a route, a claim and a subscription', async () => {
    const { config } = await load({
      flags: {
        ...RUNNABLE,
        '--mode': 'reactive',
        '--mcp': ['${SOURCE}=${URL}', 'coord=http://127.0.0.1:2/mcp'],
        '--mcp-tags': ['${SOURCE}=${TAG}'],
        '--route': [
          'inbox:///${PARTITION}/**=>claim:${COORD},name=of ${PARTITION},tools=${SOURCE}__read|x__*',
        ],
        '--claim': ['inbox:///more/${PARTITION}=${COORD}'],
        '--continue': ['inbox:///chat/${PARTITION}'],
        '--subscribe': ['${SOURCE}:inbox:///${PARTITION}/**'],
      },
      env: {
        PARTITION: 'invoices',
        SOURCE: 'inbox',
        URL: 'http://127.0.0.1:1/mcp',
        COORD: 'coord',
        TAG: 'sensitive',
      },
    });
    expect(config.mcpServers[0]).toMatchObject({
      name: 'inbox',
      tags: ['sensitive'],
      transport: { kind: 'http', url: 'http://127.0.0.1:1/mcp' },
    });
    expect(config.routes).toMatchObject([
      { name: 'of invoices', match: 'inbox:///invoices/**', tools: ['inbox__read', 'x__*'] },
      { match: 'inbox:///chat/invoices', disposition: { kind: 'continue' } },
      { match: 'inbox:///more/invoices', claim: { server: 'coord' } },
    ]);
    expect(config.routes[0]?.claim).toMatchObject({ server: 'coord' });
    expect(config.subscriptions).toContainEqual({ server: 'inbox', match: 'inbox:///invoices/**' });
  });

  it('names files: of the configuration, of instructions, of credentials', async () => {
    const { config, files } = await load({
      flags: {
        '--config': ['${PARTITION}.yaml'],
        '--instruction-file': '${PARTITION}.md',
        '--intelligence': 'script:${PLAYBOOK},https://m.example',
        '--intelligence-token-file': '${PARTITION}.token',
        '--health-http': '127.0.0.1:${PORT}',
      },
      env: { PARTITION: 'invoices', PLAYBOOK: 'final', PORT: '9100' },
      files: { 'invoices.yaml': 'limits: {max_steps: 7}', 'invoices.md': 'Go.', 'invoices.token': 't' },
    });
    expect(config.limits.maxSteps).toBe(7);
    expect(config.instruction).toBe('Go.');
    expect(config.intelligence.endpoints.map(({ url }) => url)).toEqual([
      'script:final',
      'https://m.example',
    ]);
    expect(config.intelligence.endpoints[0]?.token).toMatchObject({
      secret: 'file',
      path: expect.stringMatching(/\/invoices\.token$/),
    });
    expect(config.observability.metricsAddr).toBe('127.0.0.1:9100');
    expect(files.map((path) => path.split('/').at(-1))).toEqual(['invoices.yaml', 'invoices.md']);
  });

  it('is expanded in a secret reference, whose secret is not read', async () => {
    const { config } = await load({
      flags: { ...RUNNABLE, '--intelligence-token': '{{secret-file:${DIR}/token}}' },
      env: { DIR: '/run/creds' },
      purpose: 'validate',
    });
    expect(config.intelligence.endpoints[0]?.token).toEqual({ secret: 'file', path: '/run/creds/token' });
  });

  it('makes no secret of a variable: a credential stays a reference, and is never quoted', async () => {
    const error = await refusal({
      flags: {
        ...RUNNABLE,
        '--intelligence-token': '${TOKEN}',
        '--mcp': ['s=https://me:${TOKEN}@h.example'],
      },
      env: { TOKEN: 'hush-hush' },
    });
    expect(error.message).toContain('--intelligence-token: intelligence.token: a secret must be a reference');
    expect(error.message).toContain('carries a user name or password');
    expect(`${error.message} ${error.remedy}`).not.toContain('hush');
  });

  it('puts in what the variable holds as text: no item, no option, no reference comes of it', async () => {
    const held = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1 }),
      fc.constantFrom('a,b', 'x=>spawn', ',name=y', '{{secret:K}}', '${OTHER}', '$${', '=coord', '|'),
    );
    await fc.assert(
      fc.asyncProperty(held, async (value) => {
        const { config } = await load({
          flags: {
            ...reactive,
            '--instruction': 'say ${VALUE}.',
            '--route': ['a://${VALUE}=>claim:coord,instruction=do ${VALUE}'],
            '--claim': ['b://${VALUE}=coord'],
          },
          env: { VALUE: value, OTHER: 'other' },
        });
        expect(config.instruction).toBe(`say ${value}.`);
        expect(config.routes).toHaveLength(2);
        expect(config.routes[0]).toMatchObject({
          match: `a://${value}`,
          instruction: `do ${value}`,
          claim: { server: 'coord' },
        });
        expect(config.routes[1]).toMatchObject({ match: `b://${value}`, claim: { server: 'coord' } });
      }),
      { numRuns: 60 },
    );
  });

  it('is literal when written $${NAME}, and in what the environment says', async () => {
    const { config } = await load({
      flags: { '--instruction': 'print $${HOME} and {"a": "$HOME"}', '--intelligence': 'script:final' },
    });
    expect(config.instruction).toBe('print ${HOME} and {"a": "$HOME"}');
    const other = await load({
      flags: { '--intelligence': 'script:final' },
      env: { AGENT_INSTRUCTION: 'print ${HOME} $${x}', HOME: '/root' },
    });
    expect(other.config.instruction).toBe('print ${HOME} $${x}');
  });

  it('is refused when unset or empty, naming the flag, the variable and the remedy', async () => {
    for (const env of [{}, { PARTITION: '' }]) {
      const error = await refusal({
        flags: { ...reactive, '--route': ['inbox:///${PARTITION}/**=>spawn'] },
        env,
      });
      expect(error).toMatchObject({
        code: 'CONFIG_UNSET_VARIABLE',
        exitCode: 2,
        message: '--route: the environment variable PARTITION is not set',
        remedy: 'Set PARTITION, or write $${PARTITION} for the literal text.',
      });
    }
  });

  const withValue = [...SETTINGS, ...OTHER_FLAGS].flatMap((flag) =>
    flag.flag !== undefined && 'arg' in flag && flag.arg !== undefined ? [{ ...flag, flag: flag.flag }] : [],
  );

  it.each(withValue.map((flag) => [flag.flag, flag] as const))('is expanded in %s', async (name, flag) => {
    // Whole, in the shape the flag takes apart.
    const text =
      {
        '--mcp': 'n=${GONE}',
        '--mcp-tags': 'n=${GONE}',
        '--claim': '${GONE}=n',
        '--route': '${GONE}=>spawn',
      }[name] ?? '${GONE}';
    const given = 'repeat' in flag && flag.repeat === true ? [text] : text;
    const error = await refusal({ flags: { ...RUNNABLE, [name]: given } });
    expect(error.message.split('; ')).toContain(`${name}: the environment variable GONE is not set`);
  });
});

describe('${NAME} in the flags of the other verbs', () => {
  it.each([
    ['coordinate', ['coordinate', '--listen', 'http://127.0.0.1:${GONE}'], '--listen'],
    ['coordinate with a database', ['coordinate', '--db=${GONE}/ledger.db'], '--db'],
    ['inbox', ['inbox', '.', '--results', '${GONE}'], '--results'],
    ['the folder of inbox', ['inbox', '/srv/${GONE}'], 'the folder'],
    ['work', ['work', 'submit', 'a://b', '--kind', '${GONE}'], '--kind'],
    ['work with several values', ['work', 'submit', 'a://b', '--depends-on', 'x', '${GONE}'], '--depends-on'],
    ['a verb of the management surface', ['ps', '--url', 'http://127.0.0.1:${GONE}'], '--url'],
    ['units', ['units', '--write', '${GONE}'], '--write'],
  ])('%s: an unset name is exit 2', async (_name, args, flag) => {
    const ended = await runVerb(args, { env: {} });
    expect(ended.code).toBe(2);
    expect(ended.stderr).toBe(
      `agentd: ${flag}: the environment variable GONE is not set\n  Set GONE, or write $\${GONE} for the literal text.\n`,
    );
  });

  it('is replaced', async () => {
    const ended = await runVerb(['work', 'stats', '--url', 'ftp://${HOST}/x'], {
      env: { HOST: 'far.example' },
    });
    expect(ended.stderr).toContain('ftp://far.example/x');
  });

  it('leaves variables to the letter', async () => {
    const ended = await runVerb(['work', 'stats'], {
      env: { AGENT_COORDINATE_URL: 'ftp://${HOST}/x', HOST: 'far.example' },
    });
    expect(ended.stderr).toContain('ftp://${host}/x');
  });
});
