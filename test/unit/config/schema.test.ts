import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { configJsonSchema } from '../../../supervisor/config/json-schema.ts';
import { allKeys, keyDescriptions } from '../../../supervisor/config/schema-walk.ts';
import { SETTINGS } from '../../../supervisor/config/settings.ts';

const validate = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(configJsonSchema());

describe('the JSON Schema of the configuration', () => {
  it.each([
    {},
    { shard: '0/3', mode: 'reactive' },
    { shard: { index: 'auto/8', timer: 'keyed' } },
    { limits: { max_steps: 5, deadline: '4h', child_memory_max: '512M' } },
    { intelligence: { endpoints: ['script:final', { url: 'https://a', token: '{{secret:T}}' }] } },
    { mcp: { servers: [{ name: 'a', command: ['x'], env: { A: '1' }, required: 'no' }] } },
    { routes: [{ match: 'a://**', claim: { server: 'a', ttl: 5 }, output_contract: { type: 'object' } }] },
    { subscribe: ['a://b', { server: 'a', uri: 'a://c' }] },
  ])('accepts %j', (document) => {
    expect(validate(document), JSON.stringify(validate.errors)).toBe(true);
  });

  it.each([
    { limit: {} },
    { limits: { max_steps: 0.5 } },
    { limits: { deadline: 'soon' } },
    { intelligence: { token: 'sk-literal' } },
    { mode: 'twice' },
    { routes: [{}] },
    { shard: '3' },
  ])('rejects %j', (document) => {
    expect(validate(document)).toBe(false);
  });

  it('is of draft 2020-12 and says something of every key', () => {
    expect(configJsonSchema()).toMatchObject({ $schema: 'https://json-schema.org/draft/2020-12/schema' });
    expect([...keyDescriptions()].filter(([, text]) => text === '').map(([key]) => key)).toEqual([]);
  });
});

describe('the flags and variables', () => {
  it('set keys that exist', () => {
    const keys = allKeys().map(({ path }) => path);
    expect(SETTINGS.map(({ key }) => key).filter((key) => !keys.includes(key))).toEqual([]);
  });

  it('are each given once', () => {
    const flags = SETTINGS.flatMap(({ flag, aliases = [] }) => [
      ...(flag === undefined ? [] : [flag]),
      ...aliases,
    ]);
    const variables = SETTINGS.flatMap(({ env = [] }) => env);
    expect(flags).toHaveLength(new Set(flags).size);
    expect(variables).toHaveLength(new Set(variables).size);
  });
});
