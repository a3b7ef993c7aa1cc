import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { errorDocs } from '../../../scripts/checks/error-codes.ts';
import { generatedPages, outdatedPages } from '../../../scripts/generate-docs.ts';
import { allKeys } from '../../../supervisor/config/schema-walk.ts';
import { SETTINGS } from '../../../supervisor/config/settings.ts';

describe('the generated pages', () => {
  it('are up to date (npm run docs)', async () => {
    expect(await outdatedPages()).toEqual([]);
  });

  it('explain every error code and no other', () => {
    const page = readFileSync(new URL('../../../docs/errors.md', import.meta.url), 'utf8');
    expect(errorDocs(page)).toEqual([]);
    expect(errorDocs(page.replace('### USAGE\n', ''))).toEqual(['docs/errors.md has no entry for USAGE']);
    expect(errorDocs(`${page}\n### GONE\n`)).toEqual(['docs/errors.md explains GONE, which does not exist']);
  });

  it('name every key, flag and variable of the configuration', async () => {
    const page = (await generatedPages()).get('docs/configuration.md') ?? '';
    const named = [
      ...allKeys()
        .filter(({ path }) => !allKeys().some((other) => other.path.startsWith(`${path}.`)))
        .map(({ path }) => path),
      ...SETTINGS.flatMap(({ flag, env = [] }) => [...(flag === undefined ? [] : [flag]), ...env]),
    ];
    expect(named.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });

  it('print the tables of the machines', async () => {
    const page = (await generatedPages()).get('docs/states.md') ?? '';
    for (const title of ['## Child', '## Lease', '## Drain', '## Connection']) expect(page).toContain(title);
  });
});
