import { describe, expect, it } from 'vitest';
import { splitServer } from '../../../supervisor/config/resolve-routes.ts';
import { load, RUNNABLE, refusal } from '../../helpers/load-config.ts';

const SERVERS = ['inbox=stdio:x', 'coord=stdio:y'];
const base = { ...RUNNABLE, '--mode': 'reactive', '--mcp': SERVERS };

describe('[server:]uri', () => {
  it.each([
    ['inbox://docs/a', null, 'inbox://docs/a'],
    ['inbox:inbox://docs/a', 'inbox', 'inbox://docs/a'],
    ['inbox:**', 'inbox', '**'],
    ['inbox:urn:isbn:1', 'inbox', 'urn:isbn:1'],
    ['urn:isbn:1', null, 'urn:isbn:1'],
    ['gone:inbox://docs/a', 'gone', 'inbox://docs/a'],
    ['**', null, '**'],
  ])('reads %s', (text, server, match) => {
    expect(splitServer(text, ['inbox', 'coord'])).toEqual({ server, match });
  });
});

describe('routes and subscriptions', () => {
  it('give a subscription nothing routes a run of its own', async () => {
    const { config } = await load({ flags: { ...base, '--subscribe': ['inbox:inbox://docs/*', 'a://b'] } });
    expect(config.routes).toMatchObject([
      {
        name: 'inbox://docs/*',
        server: 'inbox',
        match: 'inbox://docs/*',
        disposition: { kind: 'spawn' },
        claim: null,
      },
      { name: 'a://b', server: null, match: 'a://b' },
    ]);
    expect(config.subscriptions).toEqual([
      { server: 'inbox', match: 'inbox://docs/*' },
      { server: null, match: 'a://b' },
    ]);
  });

  it('watch the match of a route when no subscription feeds it', async () => {
    const { config } = await load({
      flags: { ...base, '--subscribe': ['a://b'], '--route': ['c://**=>spawn', 'a://*=>claim:coord'] },
    });
    expect(config.routes.map(({ match }) => match)).toEqual(['c://**', 'a://*']);
    expect(config.subscriptions).toEqual([
      { server: null, match: 'a://b' },
      { server: null, match: 'c://**' },
    ]);
  });

  it('watch what a broad route takes, also behind a narrow one', async () => {
    const { config } = await load({
      flags: { ...base, '--route': ['a://b/first*=>spawn', 'a://b/**=>spawn'] },
    });
    expect(config.subscriptions).toEqual([
      { server: null, match: 'a://b/first*' },
      { server: null, match: 'a://b/**' },
    ]);
  });

  it('watch an exact route that a subscribed glob does not contain', async () => {
    const { config } = await load({
      flags: { ...base, '--subscribe': ['a://x/*.md'], '--route': ['a://x/b.txt=>spawn'] },
    });
    expect(config.subscriptions).toContainEqual({ server: null, match: 'a://x/b.txt' });
    expect(config.routes.map(({ match }) => match)).toEqual(['a://x/b.txt', 'a://x/*.md']);
  });

  it('lay --claim and --continue over the route of that match, or make one', async () => {
    const { config } = await load({
      flags: {
        ...base,
        '--route': ['a://b=>spawn,debounce=1s'],
        '--claim': ['a://b=coord', 'a://new=coord'],
        '--continue': ['a://chat'],
      },
    });
    expect(config.routes).toMatchObject([
      {
        match: 'a://b',
        debounceMs: 1_000,
        claim: { server: 'coord', style: 'tool', ttlMs: 30_000, renewFraction: 0.33, key: 'run_id' },
      },
      { match: 'a://chat', disposition: { kind: 'continue', session: 'a://chat' }, claim: null },
      { match: 'a://new', disposition: { kind: 'spawn' }, claim: { server: 'coord' } },
    ]);
  });

  it('take the lease time of the route before the general one', async () => {
    const { config } = await load({
      flags: {
        ...base,
        '--claim-ttl': '60s',
        '--route': ['a://b=>claim:coord,ttl=5s', 'a://c=>claim:coord'],
      },
    });
    expect(config.routes.map(({ claim }) => claim?.ttlMs)).toEqual([5_000, 60_000]);
  });

  it('read everything a route may say in a file', async () => {
    const { config } = await load({
      flags: { ...base, '--config': ['a.yaml'] },
      files: {
        'r.md': 'From a file.',
        'a.yaml': `
routes:
  - name: docs
    server: inbox
    match: inbox://docs/**
    claim: {server: coord, ttl: 10s, renew_fraction: 0.5, key: item}
    instruction_file: r.md
    output_contract: {type: object, required: [a]}
    debounce: 0
    max_inflight: 2
    queue_cap: 100
    overflow: drop_oldest
    tools: ["inbox__*"]
`,
      },
    });
    expect(config.routes).toEqual([
      {
        name: 'docs',
        server: 'inbox',
        match: 'inbox://docs/**',
        disposition: { kind: 'spawn' },
        claim: { server: 'coord', style: 'tool', ttlMs: 10_000, renewFraction: 0.5, key: 'item' },
        instruction: 'From a file.',
        outputContract: { type: 'object', required: ['a'] },
        shardKey: { kind: 'uri' },
        debounceMs: 0,
        maxInflight: 2,
        queueCap: 100,
        overflow: 'drop_oldest',
        tools: ['inbox__*'],
      },
    ]);
  });

  it('let --route replace the routes of a file', async () => {
    const { config } = await load({
      flags: { ...base, '--config': ['a.yaml'], '--route': ['c://d=>spawn'] },
      files: { 'a.yaml': 'routes: [{match: "a://b"}]\n' },
    });
    expect(config.routes.map(({ match }) => match)).toEqual(['c://d']);
  });

  it('refuse two routes of one name', async () => {
    const error = await refusal({ flags: { ...base, '--route': ['a://b=>spawn', 'a://b=>claim:coord'] } });
    expect(error.message).toContain('two routes are named a://b');
  });
});

describe('servers', () => {
  it('gain the tags of --mcp-tags', async () => {
    const { config } = await load({
      flags: { ...base, '--subscribe': ['a://b'], '--mcp-tags': ['inbox=sensitive,egress'] },
    });
    expect(config.mcpServers.map(({ tags }) => tags)).toEqual([['sensitive', 'egress'], []]);
  });

  it('may be a command line without a shell', async () => {
    const { config } = await load({
      flags: { ...RUNNABLE, '--mcp': [`fs=stdio:node 'my server.js' --root "$HOME"`] },
    });
    expect(config.mcpServers[0]?.transport).toMatchObject({
      kind: 'stdio',
      command: ['node', 'my server.js', '--root', '$HOME'],
    });
  });
});
