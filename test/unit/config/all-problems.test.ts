import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Given, RUNNABLE, refusal } from '../../helpers/load-config.ts';

/** Each complaint of a refusal, in order. */
async function complaints(given: Given): Promise<string[]> {
  return (await refusal(given)).message.split('; ');
}

const SOURCE = 'mcp: {servers: [{name: inbox, endpoint: "http://127.0.0.1:1/mcp"}]}\n';

describe('a refused configuration names what is wrong in every stage at once', () => {
  it('an unset variable, a schema mistake, a flag and a rule over several keys', async () => {
    const error = await refusal({
      flags: {
        '--config': ['a.yaml'],
        '--mode': 'reactive',
        '--intelligence': 'script:final',
        '--instruction': 'x',
        '--route': ['nonsense'],
        '--shard': '3/3',
        '--drain-timeout': '60s',
        '--pod-grace': '30s',
      },
      env: { AGENT_MAX_STEPS: 'many' },
      files: { 'a.yaml': `${SOURCE}agent:\n  name: \${NAME}\nlimits:\n  deadlin: 5s\n  max_depth: 0\n` },
    });
    expect(error.message.split('; ')).toEqual([
      'a.yaml:3:9: the environment variable NAME is not set',
      '--route: "nonsense" is not MATCH=>spawn|continue:SESSION|claim:SERVER',
      'a.yaml:5:3: limits: unknown key "deadlin" (did you mean deadline?)',
      'a.yaml:6:14: limits.max_depth: expected a whole number from 1 to 64, got 0',
      'AGENT_MAX_STEPS: limits.max_steps: expected a whole number of at least 1, got "many"',
      '--shard: shard 3 does not exist among 3',
      '--drain-timeout: the drain may take 1m, but the platform kills after 30s',
    ]);
    expect(error).toMatchObject({ code: 'CONFIG_UNSET_VARIABLE', exitCode: 2 });
    expect(error.remedy).toContain('Set NAME, or write $${NAME} for the literal text.');
    expect(error.remedy).toContain('Make drain-timeout shorter than the pod grace.');
  });

  it('two files and a file of servers, each with a mistake of its own', async () => {
    const files = {
      'a.yaml': 'agent: {name: "${ONE}"}\n',
      'b.yaml': 'run_id: ${TWO}\n',
      'm.yaml': 'servers: [{name: a, endpoint: "${THREE}"}]\n',
    };
    const env = { AGENT_MCP_CONFIG: 'm.yaml' };
    const found = await complaints({ flags: { ...RUNNABLE, '--config': ['a.yaml', 'b.yaml'] }, env, files });
    expect(found).toEqual([
      'a.yaml:1:15: the environment variable ONE is not set',
      'b.yaml:1:9: the environment variable TWO is not set',
      'm.yaml:1:31: the environment variable THREE is not set',
    ]);
  });

  it('a file that cannot be read, and what is wrong with the flags above it', async () => {
    const found = await complaints({
      flags: { '--config': ['a.yaml', 'absent.yaml'], '--max-steps': 'many' },
      files: { 'a.yaml': 'limits: {max_depth: "${DEPTH}"}\n' },
    });
    expect(found).toEqual([
      'a.yaml:1:21: the environment variable DEPTH is not set',
      'configuration file absent.yaml cannot be read: it does not exist',
      '--max-steps: limits.max_steps: expected a whole number of at least 1, got "many"',
    ]);
  });
});

/** Mistakes that have nothing to do with each other: a line of a file, or a flag. */
const MISTAKES: readonly { readonly line?: string; readonly flag?: readonly [string, string] }[] = [
  { line: 'agent: {name: "${NAME}"}' },
  { line: 'agnt: 1' },
  { line: 'cgroup: {pids_max: none}' },
  { line: 'observability: {metrics_addr: nowhere}' },
  { line: 'tls_ca: /absent/ca.pem' },
  { line: 'serve: {mcp: "ftp://x"}' },
  { flag: ['--max-depth', '0'] },
  { flag: ['--run-id', '${RUN}'] },
  { flag: ['--shard', '9/3'] },
  { flag: ['--claim', 'nonsense'] },
  { flag: ['--cron', '* * *'] },
];

describe('independent mistakes', () => {
  it('are each reported as if they were the only one', async () => {
    const found = async (mistakes: typeof MISTAKES): Promise<string[]> => {
      const flags = Object.fromEntries(mistakes.flatMap(({ flag }) => (flag === undefined ? [] : [flag])));
      // Each in a file of its own, so that its place does not depend on the others.
      const files = Object.fromEntries(
        mistakes.flatMap(({ line = '' }) =>
          line === '' ? [] : [[`${MISTAKES.findIndex((one) => one.line === line)}.yaml`, line]],
        ),
      );
      return complaints({ flags: { ...RUNNABLE, ...flags, '--config': Object.keys(files) }, files });
    };
    const alone = new Map<(typeof MISTAKES)[number], string[]>();
    for (const mistake of MISTAKES) alone.set(mistake, await found([mistake]));
    expect([...alone.values()].map(({ length }) => length)).toEqual(MISTAKES.map(() => 1));
    await fc.assert(
      fc.asyncProperty(fc.subarray([...MISTAKES], { minLength: 2 }), async (mistakes) => {
        const together = await found(mistakes);
        expect(together.sort()).toEqual(mistakes.flatMap((one) => alone.get(one) ?? []).sort());
      }),
      { numRuns: 40 },
    );
  });
});

describe('a refusal leaves out what correcting the rest would make untrue', () => {
  const only = async (text: string, more: Given['flags'] = {}): Promise<string[]> =>
    complaints({ flags: { ...RUNNABLE, ...more, '--config': ['a.yaml'] }, files: { 'a.yaml': text } });
  const reactive = { '--mode': 'reactive' };

  it.each([
    ['the type of a value that is not known', 'limits: {deadline: "${D}"}', {}],
    ['what a mode that is not known would need', 'mode: ${MODE}', {}],
    ['routes, when one is not known', `${SOURCE}routes: [{match: "\${MATCH}", server: inbox}]`, reactive],
    ['a server whose name is not known', `${SOURCE}subscribe: ["inbox:x://\${ONE}"]`, reactive],
    [
      'a route to a server whose address is not known',
      `mcp: {servers: [{name: s, endpoint: "\${URL}"}]}\nroutes: [{match: "a://b", server: s}]`,
      reactive,
    ],
    [
      'an instruction file whose name is not known',
      'agent: {instruction_file: "${FILE}"}',
      { '--mode': 'loop' },
    ],
    ['endpoints that are not known', 'intelligence: {endpoints: ["${ONE}"]}', {}],
  ])('%s', async (_name, text, flags) => {
    const [first, ...rest] = await only(text, flags);
    expect(first).toMatch(/: the environment variable [A-Z]+ is not set$/);
    expect(rest).toEqual([]);
  });

  it('an instruction whose key is mistyped', async () => {
    const found = await complaints({
      flags: { '--intelligence': 'script:final', '--config': ['a.yaml'] },
      files: { 'a.yaml': 'agent: {instructoin: x}' },
    });
    expect(found).toEqual(['a.yaml:1:9: agent: unknown key "instructoin" (did you mean instruction?)']);
  });

  it('an instruction that its file should hold', async () => {
    const found = await complaints({
      flags: { '--intelligence': 'script:final', '--instruction-file': 'absent.md' },
    });
    expect(found).toEqual([
      '--instruction-file: the instruction file absent.md cannot be read: it does not exist',
    ]);
  });

  it('a mention of a server that is declared with an address nobody may use', async () => {
    const found = await only(
      'mcp: {servers: [{name: s, endpoint: "http://far.example/mcp"}]}\nroutes: [{match: "a://b", server: s}]',
      reactive,
    );
    expect(found).toEqual([
      'a.yaml:1:37: MCP server s is at http://far.example: http:// is only allowed on loopback',
    ]);
  });

  it('but not what stays wrong: later items of a list keep their place', async () => {
    const found = await only(
      `${SOURCE}routes:\n  - {match: "\${A}"}\n  - {match: "b://c", claim: {server: nobody}}\n`,
      reactive,
    );
    expect(found).toEqual([
      'a.yaml:3:13: the environment variable A is not set',
      'a.yaml:4:38: the claim of route b://c names the MCP server nobody, which is not declared',
    ]);
  });

  it('and still an unset name whose value a later layer replaces', async () => {
    const found = await only('limits: {max_steps: "${STEPS}", max_depth: none}\nmode: ${MODE}\n', {
      '--max-steps': '3',
      '--mode': 'once',
    });
    expect(found).toEqual([
      'a.yaml:1:21: the environment variable STEPS is not set',
      'a.yaml:2:7: the environment variable MODE is not set',
      'a.yaml:1:44: limits.max_depth: expected a whole number from 1 to 64, got "none"',
    ]);
  });
});
