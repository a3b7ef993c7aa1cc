import { describe, expect, it } from 'vitest';
import { ERRORS } from '../../../protocol/errors.ts';
import { EXIT_CODE_TABLE } from '../../../protocol/exit-codes.ts';
import { METRICS } from '../../../protocol/metrics-registry.ts';
import { VERBS } from '../../../supervisor/cli/help-text.ts';
import { explain } from '../../../supervisor/console/help/explain.ts';
import { markdownText } from '../../../supervisor/console/help/markdown-text.ts';
import { topics } from '../../../supervisor/console/help/topics.ts';
import { plain, widthOf } from '../../../supervisor/console/style.ts';
import { runVerb } from '../../helpers/run-verb.ts';

describe('agentd help', () => {
  it('explains every error code and every metric', () => {
    for (const [code, { remedy }] of Object.entries(ERRORS)) {
      expect(explain(code)).toContain(`What to do: ${remedy}`);
    }
    expect(explain('mcp-unavailable')).toMatch(/^MCP_UNAVAILABLE/);
    for (const { name, help } of METRICS) expect(explain(name)).toContain(help);
    expect(explain('124')).toContain('EXIT_TIMEOUT');
    expect(explain('no_such_thing')).toBeNull();
  });

  it('is itself among the verbs, and shows the same as no word', async () => {
    const { stdout } = await runVerb(['--help']);
    expect(stdout).toMatch(/^ {2}help {8}Explain a verb/m);
    expect(await runVerb(['help', 'help'])).toEqual(await runVerb(['help']));
    const near = await runVerb(['hepl']);
    expect(near.stderr).toContain('did you mean help?');
  });

  it.each([...Object.keys(VERBS).map((verb) => [verb]), ['work', 'submit']])(
    'has the table of exit codes where agents are run, and elsewhere where it is: %s %s',
    async (...words) => {
      const { code, stdout } = await runVerb([...words.filter((word) => word !== undefined), '--help']);
      expect(code).toBe(0);
      const table = words[0] === 'supervise' || words[0] === 'run';
      for (const { name } of EXIT_CODE_TABLE) expect(stdout.includes(name), name).toBe(table);
      expect(stdout.includes('Exit codes: `agentd help exit-codes`.')).toBe(!table);
    },
  );

  it('says that a flag takes a reference to a credential, and its variable the credential', async () => {
    const { stdout } = await runVerb(['run', '--help']);
    const [, text = ''] =
      /--intelligence-token <REFERENCE>(.*?)--intelligence-token-file/s.exec(stdout) ?? [];
    expect(text.replace(/\s+/g, ' ')).toContain(
      'Given as {{secret:VARIABLE}} or {{secret-file:PATH}}; the variable holds the credential itself. [AGENT_INTELLIGENCE_TOKEN]',
    );
  });

  it('shows every page of the documentation as a topic', async () => {
    const names = topics().map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining(['exit-codes', 'errors', 'configuration', 'events', 'metrics', 'playbooks']),
    );
    for (const name of names) {
      const { code, stdout } = await runVerb(['help', name]);
      expect(code, name).toBe(0);
      expect(stdout, name).not.toMatch(/^#|\]\(|<!--/m);
    }
  });

  it('shows flags and page of a word that is both a verb and a topic', async () => {
    const { stdout } = await runVerb(['help', 'events']);
    expect(stdout).toContain('Usage: agentd events');
    expect(stdout).toContain('seq');
  });

  it('lists the topics after the overview, and says what to do about a word it does not know', async () => {
    const overview = await runVerb(['help']);
    expect(overview.stdout).toContain('Topics (agentd help TOPIC):');
    expect((await runVerb(['help', 'topics'])).stdout).toContain('exit-codes');
    const unknown = await runVerb(['help', 'playbok']);
    expect(unknown).toMatchObject({ code: 2, stdout: '' });
    expect(unknown.stderr).toContain('did you mean playbooks?');
    expect(unknown.stderr).toContain('agentd help topics');
  });
});

describe('a mistake on the command line', () => {
  it.each([
    [
      'an unknown flag',
      ['top', '--frob'],
      "unknown option '--frob'",
      '`agentd top --help` lists what it takes.',
    ],
    [
      'an unknown command',
      ['work', 'lst'],
      "unknown command 'lst' (did you mean list?)",
      'The commands are submit, list, show, requeue, drop, stats; see `agentd work --help`.',
    ],
    [
      'a missing command',
      ['work'],
      'agentd work needs a command',
      'The commands are submit, list, show, requeue, drop, stats; see `agentd work --help`.',
    ],
    [
      'a missing argument',
      ['inspect'],
      "missing required argument 'handle'",
      'Write `agentd inspect [options] <handle>`; see `agentd inspect --help`.',
    ],
    [
      'a missing argument of a command',
      ['work', 'show'],
      "missing required argument 'id'",
      'Write `agentd work show [options] <id>`; see `agentd work show --help`.',
    ],
    [
      'too many arguments',
      ['pause', 'x'],
      'too many arguments. Expected 0 arguments but got 1',
      'Write `agentd pause [options]`; see `agentd pause --help`.',
    ],
    [
      'a flag without its value',
      ['inbox', '.', '--results'],
      "option '--results <dir>' argument missing",
      'Give the flag a value; see `agentd inbox --help`.',
    ],
    [
      'a value that will not do',
      ['units', '--shards', 'x'],
      '--shards "x" is not a whole number from 1 to 512',
      'Correct what the message names; `agentd units --help` shows what it takes.',
    ],
    [
      'a value of a command that will not do',
      ['work', 'list', '--limit', '0'],
      '--limit "0" is not a whole number from 1',
      'Correct what the message names; `agentd work list --help` shows what it takes.',
    ],
  ] as const)('says what to write instead: %s', async (_name, args, message, remedy) => {
    expect(await runVerb(args)).toEqual({
      code: 2,
      stdout: '',
      stderr: `agentd: ${message}\n  ${remedy}\n`,
    });
  });
});

describe('a page as text', () => {
  it('renders headings, paragraphs, lists, code and tables', () => {
    const page = [
      '<!-- Generated; do not edit. -->',
      '# Title of `it`',
      '',
      'One **two**',
      'three [four](x.md) a_b *em*.',
      '',
      '- first',
      '  and more',
      '- second',
      '',
      '```sh',
      'agentd | cat',
      '```',
      '',
      '| a | b |',
      '|---|---|',
      '| `x\\|y` | two words |',
    ].join('\n');
    expect(markdownText(page, 80, plain)).toBe(
      [
        'Title of it',
        '',
        'One two three four a_b em.',
        '',
        '- first and more',
        '- second',
        '',
        '    agentd | cat',
        '',
        'a    b',
        'x|y  two words',
        '',
      ].join('\n'),
    );
  });

  it('keeps within the width: wraps the widest column, or makes a paragraph of each row', () => {
    const words = 'word '.repeat(40).trim();
    const page = `| key | ${words} | c |\n|---|---|---|\n| k | ${words} | v |\n`;
    for (const width of [80, 50, 30]) {
      for (const line of markdownText(page, width, plain).split('\n')) {
        expect(widthOf(line)).toBeLessThanOrEqual(width);
      }
    }
  });
});
