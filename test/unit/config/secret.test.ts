import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { effectiveConfig } from '../../../supervisor/config/effective.ts';
import {
  formatSecret,
  parseSecret,
  readHeaderSecret,
  readSecret,
} from '../../../supervisor/config/secret.ts';
import { load, RUNNABLE, refusal } from '../../helpers/load-config.ts';

let dir = '';
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'agentd-secret-'));
  writeFileSync(join(dir, 'token'), 'from-file\n');
});
afterAll(() => rmSync(dir, { recursive: true }));

describe('secret references', () => {
  it('reads a variable, a file and text around them when used', () => {
    const ref = parseSecret(`Bearer {{secret:TOK}}:{{secret-file:${dir}/token}}`, '/');
    if (ref === null) throw new Error('not a reference');
    expect(readSecret(ref, { TOK: 'one' })).toBe('Bearer one:from-file');
    expect(readSecret(ref, { TOK: 'two' })).toBe('Bearer two:from-file');
  });

  it.each(['{{secret:A}}', '{{secret-file:/run/x}}', 'Bearer {{secret:A}}'])(
    'writes %s as it was',
    (text) => {
      const ref = parseSecret(text, '/');
      expect(ref === null ? null : formatSecret(ref)).toBe(text);
    },
  );

  it.each(['plain', '{{event.uri}}', '{{secret:}}', '{secret:A}'])('finds no reference in %j', (text) => {
    expect(parseSecret(text, '/')).toBeNull();
  });

  it('takes a relative path from the working directory of the process', () => {
    expect(parseSecret('{{secret-file:token}}', dir)).toEqual({ secret: 'file', path: `${dir}/token` });
  });

  it('says which variable or file cannot be read', () => {
    expect(() => readSecret({ secret: 'env', name: 'NOPE' }, {})).toThrow(/secret NOPE is not set/);
    expect(() => readSecret({ secret: 'file', path: `${dir}/gone` })).toThrow(
      /secret file .*gone cannot be read/,
    );
  });
});

describe('a secret that goes into a header', () => {
  const env = (value: string) => () => readHeaderSecret({ secret: 'env', name: 'TOK' }, { TOK: value });

  it.each(['sk-123', 'with space', 'tab\tinside', 'caf\u00e9', '~!#'])('may be %j', (value) => {
    expect(env(value)()).toBe(value);
  });

  it.each([
    ['sk-hush\nx', 'holds a line break'],
    ['sk-hush\n', 'holds a line break'],
    ['sk-hush\rx', 'holds a line break'],
    ['sk-hush\u0000', 'holds a control character'],
    ['sk-hush\u007f', 'holds a control character'],
    ['sk-hush\u201c', 'holds a character outside Latin-1'],
    ['sk-hush\u{1f511}', 'holds a character outside Latin-1'],
  ])('is refused by its source when it is %j', (value, problem) => {
    const words = `secret TOK in the environment ${problem}, so no HTTP header can carry it`;
    expect(env(value)).toThrow(
      expect.objectContaining({ code: 'SECRET_UNUSABLE', exitCode: 2, message: words }),
    );
  });

  it('is refused by the part that cannot be sent, whatever is around it', () => {
    writeFileSync(join(dir, 'two-lines'), 'sk-hush\nsecond\n');
    writeFileSync(join(dir, 'empty'), '\n');
    const read = (text: string) => () => {
      const ref = parseSecret(text, dir);
      return ref === null ? '' : readHeaderSecret(ref, { TOK: 'fine' });
    };
    expect(read('Bearer {{secret:TOK}}{{secret-file:token}}')()).toBe('Bearer finefrom-file');
    expect(read('Bearer {{secret-file:two-lines}}')).toThrow(
      `secret file ${dir}/two-lines holds a line break`,
    );
    expect(read('Bearer {{secret-file:empty}}')).toThrow(`secret file ${dir}/empty is empty`);
    expect(read('Bear\ner {{secret:TOK}}')).toThrow(
      'the text around the secret in Bear?er {{secret:TOK}} holds',
    );
  });
});

describe('secrets in a configuration', () => {
  const server = (header: string): string =>
    `mcp:\n  servers:\n    - name: s\n      endpoint: https://example.org/mcp\n      headers:\n        ${header}\n`;

  it('stay references, also in the effective configuration', async () => {
    const { config } = await load({
      flags: { '--config': ['a.yaml'], '--intelligence': 'https://example.org', '--instruction': 'x' },
      env: { AGENT_INTELLIGENCE_TOKEN: 'sk-very-secret', TOK: 'hush' },
      files: { 'a.yaml': server('Authorization: Bearer {{secret:TOK}}') },
    });
    expect(config.intelligence.endpoints).toEqual([
      { url: 'https://example.org', token: { secret: 'env', name: 'AGENT_INTELLIGENCE_TOKEN' } },
    ]);
    const dump = JSON.stringify(effectiveConfig(config));
    expect(dump).toContain('Bearer {{secret:TOK}}');
    expect(dump).toContain('{{secret:AGENT_INTELLIGENCE_TOKEN}}');
    expect(dump).not.toMatch(/very-secret|hush/);
  });

  it.each(['Authorization', 'X-Api-Key', 'cookie', 'x-auth-token'])(
    'refuses a literal in the header %s',
    async (name) => {
      const error = await refusal({
        flags: { ...RUNNABLE, '--config': ['a.yaml'] },
        files: { 'a.yaml': server(`${name}: sk-literal`) },
      });
      expect(error.exitCode).toBe(2);
      expect(error.message).toContain(`a.yaml:6:`);
      expect(error.message).toContain(`${name} looks like a credential`);
      expect(error.message).not.toContain('sk-literal');
    },
  );

  it('refuses a credential that came through an expansion', async () => {
    const error = await refusal({
      flags: { ...RUNNABLE, '--config': ['a.yaml'] },
      env: { TOK: 'sk-expanded' },
      files: { 'a.yaml': 'mcp: {servers: [{name: s, command: [x], env: {GITHUB_TOKEN: "${TOK}"}}]}\n' },
    });
    expect(error.message).toContain('GITHUB_TOKEN looks like a credential');
    expect(error.message).not.toContain('sk-expanded');
  });

  it('refuses a literal token on the command line without repeating it', async () => {
    const error = await refusal({ flags: { ...RUNNABLE, '--intelligence-token': 'sk-argv' } });
    expect(error.message).toContain('--intelligence-token');
    expect(error.message).not.toContain('sk-argv');
  });

  it('refuses a reference where text is wanted', async () => {
    const error = await refusal({ flags: { ...RUNNABLE, '--model': '{{secret:M}}' } });
    expect(error.message).toBe('--model: intelligence.model: a secret reference is not allowed here');
  });

  it('does not repeat the credentials of an address', async () => {
    const error = await refusal({
      flags: { ...RUNNABLE, '--intelligence': 'https://user:hunter2@example.org' },
    });
    expect(error.message).toContain('carries a user name or password');
    expect(error.message).not.toContain('hunter2');
  });

  it('gives numbered tokens to their endpoints', async () => {
    const { config } = await load({
      flags: { '--instruction': 'x', '--intelligence': 'https://a.example,https://b.example' },
      env: { AGENT_INTELLIGENCE_TOKEN: 'all', AGENT_INTELLIGENCE_TOKEN_2_FILE: `${dir}/token` },
    });
    expect(config.intelligence.endpoints.map(({ token }) => token)).toEqual([
      { secret: 'env', name: 'AGENT_INTELLIGENCE_TOKEN' },
      { secret: 'file', path: `${dir}/token` },
    ]);
  });

  const missing = {
    '--intelligence': 'https://m.example',
    '--model': 'm',
    '--intelligence-token': '{{secret:GONE}}',
  };

  it('are looked for before anything starts', async () => {
    const error = await refusal({ flags: { ...RUNNABLE, ...missing } });
    expect(error).toMatchObject({ code: 'SECRET_UNREADABLE', exitCode: 2 });
    expect(error.message).toBe('secret GONE is not set in the environment');
  });

  it.each([
    ['--intelligence-token', {}],
    ['--serve-bearer', { '--serve-mcp': 'http://127.0.0.1:0' }],
  ])('are refused before anything starts where no header can carry them: %s', async (flag, more) => {
    const flags = { ...RUNNABLE, ...missing, '--intelligence-token': '{{secret:TOK}}', ...more };
    const error = await refusal({
      flags: { ...flags, [flag]: '{{secret:BAD}}' },
      env: { BAD: 'sk-hush\nrest', TOK: 'fine' },
    });
    expect(error).toMatchObject({ code: 'SECRET_UNUSABLE', exitCode: 2 });
    expect(error.message).toBe(
      'secret BAD in the environment holds a line break, so no HTTP header can carry it',
    );
  });

  it.each([
    ['"X Y": z', 'header "X Y" of MCP server s is no name of a header'],
    ['"X-Y": "a\\nhush"', 'header "X-Y" of MCP server s holds a line break'],
  ])('and what else is in headers is looked at as well: %s', async (header, problem) => {
    const error = await refusal({
      flags: { ...RUNNABLE, '--config': ['a.yaml'] },
      files: { 'a.yaml': server(header) },
    });
    expect(error.exitCode).toBe(2);
    expect(error.message).toContain(problem);
    expect(error.message).not.toContain('hush');
  });

  it('may be missing where a configuration is only validated or described', async () => {
    const validated = await load({ flags: { ...RUNNABLE, ...missing }, purpose: 'validate' });
    expect(validated.warnings).toEqual(['secret GONE is not set in the environment']);
    const described = await load({ flags: missing, purpose: 'describe' });
    expect(described.warnings).toEqual([]);
  });
});
