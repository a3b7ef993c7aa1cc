import { describe, expect, it } from 'vitest';
import { isImplemented } from '../../../supervisor/config/implemented.ts';
import { type Given, RUNNABLE, refusal } from '../../helpers/load-config.ts';

const reactive = { ...RUNNABLE, '--mode': 'reactive', '--mcp': ['s=stdio:x'], '--subscribe': ['a://b'] };
const withFile = (text: string): Given => ({
  flags: { ...RUNNABLE, '--config': ['a.yaml'] },
  files: { 'a.yaml': text },
});

/** What is refused, what the message must name, and the code. */
const REFUSALS: readonly [string, Given, RegExp, string?][] = [
  ['K = N', { flags: { ...RUNNABLE, '--shard': '3/3' } }, /^--shard: shard 3 does not exist among 3$/],
  [
    'K > N',
    { flags: RUNNABLE, env: { AGENT_SHARD: '4/3' } },
    /^AGENT_SHARD: shard 4 does not exist among 3$/,
  ],
  ['N = 0', { flags: { ...RUNNABLE, '--shard': '0/0' } }, /among 0 shards/],
  ['a leading zero', { flags: { ...RUNNABLE, '--shard': '010/8' } }, /"010\/8" is not K\/N/],
  ...['1', '1/', '/3', 'a/3', '-1/3', '1/3/5', ' 1/3', '0x1/3', '1.0/3', '١/٣'].map(
    (shard): [string, Given, RegExp] => [
      `the shard ${JSON.stringify(shard)}`,
      { flags: { ...RUNNABLE, '--shard': shard } },
      /^--shard: the shard .* is not K\/N or auto\/N/,
    ],
  ),
  [
    'auto without a name',
    { flags: { ...RUNNABLE, '--shard': 'auto/3' } },
    /neither AGENT_POD_NAME nor HOSTNAME is set/,
  ],
  [
    'auto without an ordinal',
    {
      flags: { ...RUNNABLE, '--shard': 'auto/3' },
      env: { AGENT_POD_NAME: 'worker-abc', HOSTNAME: 'host-1' },
    },
    /AGENT_POD_NAME="worker-abc" does not end in a number/,
  ],
  [
    'auto beyond N',
    { flags: { ...RUNNABLE, '--shard': 'auto/3' }, env: { AGENT_POD_NAME: 'worker-3' } },
    /shard 3 does not exist among 3 \(auto\/3\)/,
  ],
  [
    'no instruction in mode once',
    { flags: { '--intelligence': 'script:final' } },
    /once mode has no instruction/,
  ],
  ['no model endpoint', { flags: { '--instruction': 'x' } }, /no model endpoint is configured/],
  [
    'a route without an instruction',
    {
      flags: {
        '--intelligence': 'script:final',
        '--mode': 'reactive',
        '--mcp': ['s=stdio:x'],
        '--route': ['a://b=>spawn'],
      },
    },
    /route a:\/\/b has no instruction, and neither has the agent/,
  ],
  [
    'nothing to react to',
    { flags: { ...RUNNABLE, '--mode': 'reactive' } },
    /reactive mode has nothing to react to/,
  ],
  [
    'subscriptions without a server',
    { flags: { ...RUNNABLE, '--mode': 'reactive', '--subscribe': ['a://b'] } },
    /no MCP server is declared/,
  ],
  [
    'a schedule without a clock',
    { flags: { ...RUNNABLE, '--mode': 'schedule' } },
    /schedule mode has no clock/,
  ],
  [
    'both clocks',
    { flags: { ...RUNNABLE, '--mode': 'schedule', '--interval': '5s', '--cron': '* * * * *' } },
    /both an interval and a cron/,
  ],
  [
    'a cron of six fields',
    { flags: { ...RUNNABLE, '--mode': 'schedule', '--cron': '* * * * * *' } },
    /five fields/,
  ],
  [
    'a cron out of range',
    { flags: { ...RUNNABLE, '--mode': 'schedule', '--cron': '61 * * * *' } },
    /"61 \* \* \* \*"/,
  ],
  [
    'a cron that never fires',
    { flags: { ...RUNNABLE, '--mode': 'schedule', '--cron': '0 0 30 2 *' } },
    /never fires/,
  ],
  [
    'a claim at an undeclared server',
    { flags: { ...reactive, '--route': ['a://b=>claim:cord'], '--mcp': ['s=stdio:x', 'coord=stdio:y'] } },
    /MCP server cord, which is not declared \(did you mean coord\?\)/,
  ],
  [
    '--claim at an undeclared server',
    { flags: { ...reactive, '--claim': ['a://b=gone'] } },
    /--claim: .*server gone/,
  ],
  [
    'a subscription at an undeclared server',
    { flags: { ...reactive, '--subscribe': ['gone:a://b'] } },
    /--subscribe: .*server gone/,
  ],
  [
    'a claim that blocks',
    { flags: { ...reactive, '--route': ['a://b=>claim:s,overflow=block'] } },
    /route a:\/\/b claims its items and cannot block/,
  ],
  [
    'a drain as long as the grace',
    { flags: { ...RUNNABLE, '--drain-timeout': '30s', '--pod-grace': '30' } },
    /the drain may take 30s, but the platform kills after 30s/,
  ],
  ['a default drain past the grace', { flags: RUNNABLE, env: { AGENT_POD_GRACE_SECONDS: '20' } }, /25s.*20s/],
  [
    'http:// off loopback for a server',
    { flags: { ...RUNNABLE, '--mcp': ['s=http://10.0.0.1/mcp'] } },
    /^--mcp: MCP server s is at http:\/\/10\.0\.0\.1: http:\/\/ is only allowed on loopback$/,
  ],
  [
    'http:// off loopback for the model',
    { flags: { ...RUNNABLE, '--intelligence': 'http://models.example' } },
    /only allowed on loopback/,
  ],
  [
    'an address that is no URL',
    { flags: { ...RUNNABLE, '--intelligence': 'gpt' } },
    /the model endpoint has an address that is not a URL/,
  ],
  [
    'a model script that is not there',
    { flags: { ...RUNNABLE, '--intelligence': 'script:gone.yaml' } },
    /script "gone\.yaml" does not exist/,
  ],
  [
    'a model script that is not there and has no ending',
    { flags: { ...RUNNABLE, '--intelligence': 'script:/gone' }, purpose: 'validate' },
    /script "\/gone" does not exist/,
  ],
  [
    'a model script that is a folder',
    { flags: { ...RUNNABLE, '--intelligence': 'script:/' } },
    /script "\/" is no regular file/,
  ],
  ['a server without an endpoint', withFile('mcp: {servers: [{name: s}]}'), /MCP server s needs either/],
  [
    'a server with both',
    withFile('mcp: {servers: [{name: s, endpoint: "stdio:x", command: [x]}]}'),
    /MCP server s needs either/,
  ],
  [
    'two servers of one name',
    { flags: { ...RUNNABLE, '--mcp': ['s=stdio:x', 's=stdio:y'] } },
    /two MCP servers are named s/,
  ],
  [
    'tags of an undeclared server',
    { flags: { ...RUNNABLE, '--mcp-tags': ['gone=egress'] } },
    /no MCP server is named gone/,
    'USAGE',
  ],
  ['an unknown tag', { flags: { ...reactive, '--mcp-tags': ['s=shiny'] } }, /"shiny" is not one of/, 'USAGE'],
  [
    'a malformed route',
    { flags: { ...reactive, '--route': ['a://b'] } },
    /^--route: "a:\/\/b" is not MATCH=>/,
    'USAGE',
  ],
  [
    'two tokens',
    { flags: RUNNABLE, env: { AGENT_INTELLIGENCE_TOKEN: 'a', AGENT_INTELLIGENCE_TOKEN_FILE: '/b' } },
    /both set intelligence\.token/,
    'USAGE',
  ],
  [
    'a token of no endpoint',
    { flags: RUNNABLE, env: { AGENT_INTELLIGENCE_TOKEN_2: 'a' } },
    /no endpoint number 2/,
  ],
  [
    'an instruction given twice',
    { flags: { ...RUNNABLE, '--instruction-file': 'x.md' }, files: { 'x.md': 'x' } },
    /both an instruction and an instruction file/,
  ],
  [
    'an instruction file that is not there',
    { flags: { '--instruction-file': 'x.md', '--intelligence': 'script:final' } },
    /x\.md cannot be read: it does not exist/,
  ],
  [
    'an empty instruction file',
    { flags: { '--instruction-file': 'x.md', '--intelligence': 'script:final' }, files: { 'x.md': ' \n' } },
    /x\.md cannot be read: it is empty/,
  ],
  [
    'a metrics address without a port',
    { flags: { ...RUNNABLE, '--metrics-addr': 'localhost' } },
    /"localhost" is not HOST:PORT/,
  ],
  ['a metrics port out of range', { flags: { ...RUNNABLE, '--metrics-addr': ':70000' } }, /is not HOST:PORT/],
  [
    'a certificate that is not there',
    { flags: { ...RUNNABLE, '--tls-ca': 'ca.pem' } },
    /ca\.pem cannot be read/,
  ],
  [
    'a renew fraction of 1',
    { flags: { ...RUNNABLE, '--claim-renew-fraction': '1' } },
    /between 0 and 1, both excluded, got "1"/,
  ],
  ['a renew fraction of 0', withFile('claim: {renew_fraction: 0}'), /between 0 and 1, both excluded, got 0/],
  [
    'a number that is none',
    { flags: RUNNABLE, env: { AGENT_MAX_STEPS: 'many' } },
    /^AGENT_MAX_STEPS: .*whole number of at least 1, got "many"/,
  ],
  [
    'a number out of range',
    { flags: { ...RUNNABLE, '--max-steps': '0' } },
    /whole number of at least 1, got "0"/,
  ],
  [
    'a mode that is none',
    { flags: { ...RUNNABLE, '--mode': 'reactiv' } },
    /expected one of once, loop, reactive, schedule, got "reactiv"/,
  ],
  ['a run id with a blank', { flags: { ...RUNNABLE, '--run-id': 'a b' } }, /a run id has/],
  [
    'an exit code out of range',
    { flags: { ...RUNNABLE, '--budget-exit-code': '256' } },
    /from 0 to 255, got "256"/,
  ],
  [
    'a file that is not there',
    { flags: { ...RUNNABLE, '--config': ['gone.yaml'] } },
    /gone\.yaml cannot be read: it does not exist/,
  ],
  ['a file that is a list', withFile('- a\n'), /a\.yaml:1:1: the file must hold a mapping/],
  [
    'a key given twice',
    withFile('mode: once\nmode: loop\n'),
    /a\.yaml:2:1: not valid YAML: Map keys must be unique/,
  ],
  ['broken YAML', withFile('limits: [1\nmode: loop\n'), /a\.yaml:2:1: not valid YAML/],
  ['an unknown YAML tag', withFile('mode: !env MODE\n'), /a\.yaml:1:7: not valid YAML: Unresolved tag: !env/],
  ['two YAML documents', withFile('mode: once\n---\nmode: loop\n'), /a second YAML document/],
  ['an alias of itself', withFile('limits: &l {max_steps: *l}\n'), /too large or too deep/],
  [
    'a file that is not UTF-8',
    { ...withFile(''), files: { 'a.yaml': '' }, flags: { ...RUNNABLE, '--config': ['/proc/self/exe'] } },
    /\/proc\/self\/exe cannot be read/,
  ],
  ...(
    [
      ['--standby', { '--standby': true }, 'standby'],
      ['--assign-from', { '--assign-from': 's:a://b' }, 'standby'],
      ['--watch-config', { '--watch-config': true }, 'watch_config'],
      ['--serve-mcp', { '--serve-mcp': 'http://127.0.0.1:0' }, 'management'],
      ['--serve-cert', { '--serve-cert': 'x' }, 'management'],
      ['--serve-key', { '--serve-key': 'x' }, 'management'],
      ['--serve-client-ca', { '--serve-client-ca': 'x' }, 'management'],
      ['--serve-bearer', { '--serve-bearer': '{{secret:B}}' }, 'management'],
      ['--cgroup', { '--cgroup': 'auto' }, 'cgroup'],
      ['--cgroup-memory-max', { '--cgroup-memory-max': '1G' }, 'cgroup'],
      ['--cgroup-pids-max', { '--cgroup-pids-max': '10' }, 'cgroup'],
      ['--aggregate-logs', { '--aggregate-logs': true }, 'aggregate_logs'],
      ['--claim', { '--route': ['a://b=>claim:s:resource'] }, 'claim_resource'],
    ] as const
  )
    .filter(([, , feature]) => !isImplemented(feature))
    .map(([name, flags, feature]): [string, Given, RegExp, string] => [
      `${name} of a feature this build lacks`,
      { flags: { ...reactive, ...flags } },
      new RegExp(`not implemented in this build \\(feature ${feature}\\)`),
      'NOT_IMPLEMENTED',
    ]),
];

describe('a configuration is refused for', () => {
  it.each(REFUSALS)('%s', async (_name, given, message, code = 'CONFIG_INVALID') => {
    const error = await refusal(given);
    expect(error.message).toMatch(message);
    expect(error).toMatchObject({ code, exitCode: 2 });
    expect(error.remedy).not.toBe('');
  });
});
