import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseSource, readProject, type SourceFile } from '../../../scripts/checks/project.ts';
import { STRUCTURE } from '../../../scripts/checks/structure.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

describe('the sources of this project', () => {
  let project: readonly SourceFile[] = [];
  beforeAll(async () => {
    project = await readProject(dirname(`${ROOT}x`));
  });

  it('are all seen', () => {
    const paths = project.map(({ path }) => path);
    expect(paths).toEqual(
      expect.arrayContaining(['supervisor/main.ts', 'child/main.ts', 'protocol/frames.ts']),
    );
  });

  it.each(Object.keys(STRUCTURE))('satisfy: %s', (name) => {
    expect(STRUCTURE[name]?.(project)).toEqual([]);
  });
});

/** A check, sources it must complain about and what it must name, and sources it must accept. */
const CASES: readonly [string, Readonly<Record<string, string>>, string, Readonly<Record<string, string>>][] =
  [
    [
      'imports keep to the house plan',
      { 'child/a.ts': "import { b } from '../supervisor/b.ts';" },
      'child/ never imports supervisor/',
      { 'child/a.ts': "import { b } from '../protocol/b.ts';" },
    ],
    [
      'imports keep to the house plan',
      { 'protocol/a.ts': "import type { b } from '../child/b.ts';" },
      'protocol/ imports neither side',
      { 'supervisor/a.ts': "export * from './b.ts';" },
    ],
    [
      'imports keep to the house plan',
      { 'supervisor/a.ts': "const { b } = await import('./b');" },
      'without its extension',
      { 'supervisor/a.ts': "import b from 'commander';" },
    ],
    [
      'files keep to the house plan',
      { 'supervisor/a.ts': 'let a;\n'.repeat(301) },
      '301 lines',
      { 'supervisor/a.ts': 'let a;\n'.repeat(300) },
    ],
    [
      'files keep to the house plan',
      { 'supervisor/x/index.ts': '' },
      'barrel',
      { 'supervisor/x/indexes.ts': '' },
    ],
    [
      'only the mains own the process',
      { 'supervisor/a.ts': "process.on('exit', () => {});" },
      'process.on',
      { 'supervisor/main.ts': 'process.exit(1);', 'supervisor/b.ts': 'process.kill(1, 0);' },
    ],
    [
      'no import cycles',
      {
        'child/a.ts': "import './b.ts';",
        'child/b.ts': "import './c.ts';",
        'child/c.ts': "import './a.ts';",
      },
      'child/a.ts → child/b.ts → child/c.ts → child/a.ts',
      {
        'child/a.ts': "import type { B } from './b.ts';",
        'child/b.ts': "import './a.ts'; void import('./a.ts');",
      },
    ],
    [
      'error codes match the table',
      { 'child/a.ts': "throw new AgentdError('NO_SUCH_CODE', 'x');" },
      'NO_SUCH_CODE',
      {},
    ],
    [
      'logged events are in the vocabulary',
      { 'supervisor/a.ts': "log.info('made.up'); this.log.write('info', 'also.made.up');" },
      'also.made.up',
      { 'supervisor/a.ts': "log.info('proc.ready'); console.log('made.up');" },
    ],
    [
      'test titles are unique',
      {
        'test/a.test.ts': "describe('x', () => { it('does', () => {}); });",
        'test/b.test.ts': "describe('x', () => { it.each([1])('does', () => {}); });",
      },
      'x > does',
      {
        'test/a.test.ts': "describe('x', () => { it('does', () => {}); it('does not', () => {}); });",
        'test/b.test.ts': "describe('y', () => { it('does', () => {}); });",
      },
    ],
    [
      'no work is promised in comments',
      { 'child/a.ts': `// ${'TO'}${'DO'}: later` },
      'later',
      { 'child/a.ts': "const text = 'a todo list'; // a list" },
    ],
    [
      'no test is switched off',
      { 'test/a.test.ts': `describe('x', () => { it.${'skip'}('y', () => {}); });` },
      'it.skip',
      { 'test/a.test.ts': "describe('x', () => { it.skipIf(false)('y', () => {}); });" },
    ],
  ];

function parse(sources: Readonly<Record<string, string>>): SourceFile[] {
  return Object.entries(sources).map(([path, text]) => parseSource(path, text));
}

describe('the check', () => {
  it.each(CASES)('"%s" finds what it looks for and nothing else (%#)', (name, bad, named, good) => {
    const check = STRUCTURE[name];
    expect(check?.(parse(bad)).join('\n')).toContain(named);
    // A few files alone raise none of the codes of the table.
    expect(check?.(parse(good)).filter((problem) => !problem.includes('which nothing raises'))).toEqual([]);
  });
});
