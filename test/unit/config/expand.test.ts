import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ExpandIssue, expandText } from '../../../supervisor/config/expand.ts';
import { SecretValue } from '../../../supervisor/config/tree.ts';
import { load, RUNNABLE, refusal } from '../../helpers/load-config.ts';

function expand(
  text: string,
  env: NodeJS.ProcessEnv,
): { value: string | SecretValue; issues: ExpandIssue[] } {
  const issues: ExpandIssue[] = [];
  const value = expandText(text, { cwd: '/', env }, (issue) => issues.push(issue));
  return { value, issues };
}

const plain = fc.string({ unit: 'grapheme' }).filter((text) => !/[{}$]/.test(text));

describe('expanding ${NAME}', () => {
  it('puts in exactly what the variable holds, whatever that is', () => {
    fc.assert(
      fc.property(plain, fc.string({ minLength: 1 }), plain, (before, held, after) => {
        const { value, issues } = expand(`${before}\${HELD}${after}`, { HELD: held });
        expect(issues).toEqual([]);
        expect(value).toBe(before + held + after);
      }),
    );
  });

  it('leaves text without a reference alone', () => {
    fc.assert(
      fc.property(plain, (text) => {
        expect(expand(text, {})).toEqual({ value: text, issues: [] });
      }),
    );
  });

  it('does not look for references in what a variable holds', () => {
    expect(expand('${A}', { A: '${B} {{secret:C}} $${' }).value).toBe('${B} {{secret:C}} $${');
  });

  it('reads $${ as a literal ${', () => {
    expect(expand('$${HOME} $HOME $$ ${A}', { A: '1' }).value).toBe('${HOME} $HOME $$ 1');
  });

  it('reports an unset, an empty and a misspelt name', () => {
    expect(expand('${A}${EMPTY}${1x}', { EMPTY: '' }).issues).toEqual([
      { kind: 'unset', name: 'A' },
      { kind: 'unset', name: 'EMPTY' },
      { kind: 'malformed', name: '${1x}' },
    ]);
  });

  it('expands inside a secret reference without reading it', () => {
    const { value } = expand('{{secret-file:${DIR}/token}}', { DIR: '/run/creds' });
    expect(value).toEqual(new SecretValue({ secret: 'file', path: '/run/creds/token' }));
  });
});

describe('values from the environment in a YAML file (H25)', () => {
  const file = { 'a.yaml': 'agent:\n  instruction: ${VALUE}\n  name: fixed\n' };
  const flags = { '--config': ['a.yaml'], '--intelligence': 'script:final' };

  it.each([
    'a: b',
    '!x',
    '#y',
    'one\ntwo',
    'pa$USERword',
    '- item',
    '{a: 1}',
    "'",
    '"',
    '*alias',
    '&anchor',
    '%',
    'null',
  ])('keeps %j a literal string', async (value) => {
    const { config } = await load({ files: file, flags, env: { VALUE: value } });
    expect(config.instruction).toBe(value);
    expect(config.identity.instance).toBe('fixed');
  });

  it('never lets a value change the shape of the document', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary', minLength: 1 }), async (value) => {
        const { config } = await load({ files: file, flags, env: { VALUE: value } });
        expect(config.instruction).toBe(value);
      }),
      { numRuns: 50 },
    );
  });

  it('refuses an unset name, naming it and where it stands', async () => {
    const error = await refusal({ files: file, flags });
    expect(error).toMatchObject({ code: 'CONFIG_UNSET_VARIABLE', exitCode: 2 });
    expect(error.message).toBe('a.yaml:2:16: the environment variable VALUE is not set');
  });

  it('expands no keys', async () => {
    const error = await refusal({
      files: { 'k.yaml': '"${VALUE}": 1\n' },
      flags: { ...RUNNABLE, '--config': ['k.yaml'] },
      env: { VALUE: 'agent' },
    });
    expect(error.message).toContain('unknown key "${VALUE}"');
  });
});
