import { describe, expect, it } from 'vitest';
import { type Given, load, RUNNABLE, refusal } from '../../helpers/load-config.ts';

const flags = { ...RUNNABLE, '--mode': 'reactive', '--mcp': ['q=stdio:x'], '--config': ['a.yaml'] };
const given = (route: string, more: Given['flags'] = {}): Given => ({
  flags: { ...flags, ...more },
  files: { 'a.yaml': `routes:\n  - {name: r, match: "q:///**", ${route}}\n` },
});

describe('a shard key', () => {
  it.each([
    ['shard_key: uri', { kind: 'uri' }],
    [
      'shard_key: {segment: tenant, template: "q:///{tenant}/{item}"}',
      { kind: 'segment', name: 'tenant', template: 'q:///{tenant}/{item}' },
    ],
    ['shard_key: {regex: "order-([0-9]+)"}', { kind: 'regex', pattern: 'order-([0-9]+)', group: 1 }],
    ['shard_key: {regex: "(a)|(b)", group: 2}', { kind: 'regex', pattern: '(a)|(b)', group: 2 }],
    [
      'shard_key: {regex: "order-(?<id>[0-9]+)", group: id}',
      { kind: 'regex', pattern: 'order-(?<id>[0-9]+)', group: 'id' },
    ],
    ['shard_key: {metadata: /owner/a~1b}', { kind: 'metadata', pointer: '/owner/a~1b' }],
  ])('is read from %s', async (text, shardKey) => {
    const { config } = await load(given(text, { '--shard': '0/3' }));
    expect(config.routes[0]?.shardKey).toEqual(shardKey);
  });

  it.each([
    [
      'segment: t, template: "q:///{tenant}"',
      /the shard key of route r is the segment t, which its template/,
    ],
    ['regex: "order-([0-9]+"', /the shard key of route r cannot be read: Invalid regular expression/],
    ['regex: "order-[0-9]+"', /is group 1, which the expression "order-\[0-9\]\+" does not have/],
    ['regex: "order-(?<id>[0-9]+)", group: name', /is group name, which the expression/],
    ['regex: "a(b)", group: -1', /is group -1, which/],
    ['metadata: tenant', /"tenant", which is no JSON pointer/],
    ['metadata: /a~2', /"\/a~2", which is no JSON pointer/],
  ])('is refused when it is {%s}', async (text, message) => {
    const error = await refusal(given(`shard_key: {${text}}`));
    expect(error).toMatchObject({ code: 'CONFIG_INVALID', exitCode: 2 });
    expect(error.message).toMatch(message);
    expect(error.message).toMatch(/^a\.yaml:2:/);
  });
});

describe('a continue route of a sharded replica', () => {
  const continued = 'disposition: continue, session: chat';

  it('that is sharded by bare URI is warned of', async () => {
    const { warnings } = await load(given(continued, { '--shard': '1/3' }));
    expect(warnings).toContainEqual(
      expect.stringMatching(
        /^route r continues the session chat, but its updates are sharded by URI: each of 3/,
      ),
    );
  });

  it.each([
    ['is not sharded', continued, {}],
    ['has a key of its own', `${continued}, shard_key: {metadata: /chat}`, { '--shard': '1/3' }],
    ['starts a run each time', 'disposition: spawn', { '--shard': '1/3' }],
  ])('is not warned of when it %s', async (_name, route, more) => {
    const { warnings } = await load(given(route, more));
    expect(warnings.filter((one) => one.includes('sharded'))).toEqual([]);
  });
});

describe('a claim of the resource style', () => {
  it('is accepted', async () => {
    const { config } = await load(given('claim: {server: q, style: resource}'));
    expect(config.routes[0]?.claim).toMatchObject({ server: 'q', style: 'resource' });
  });
});
