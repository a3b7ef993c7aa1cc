import { describe, expect, test } from 'vitest';
import { AgentdError } from '../../../protocol/errors.ts';
import { parsePlaybook } from '../../../protocol/playbook.ts';
import { renderTemplate, renderValue, templateProblem } from '../../../protocol/playbook-template.ts';

function problemOf(text: string): string {
  try {
    parsePlaybook(text, 'p.yaml');
  } catch (error) {
    if (error instanceof AgentdError && error.code === 'PLAYBOOK_INVALID') return error.message;
    throw error;
  }
  throw new Error('the playbook was accepted');
}

describe('playbook', () => {
  test('every action is read, with its defaults', () => {
    const book = parsePlaybook(
      `
turns:
  - text: thinking
    repeat: 2
  - tool: {name: a__b, arguments: {uri: "{{event.uri}}", n: [1, true, null]}}
    tokens: {in: 10, out: 2}
  - calls: [{name: x}, {name: y}]
  - loop: {name: x}
  - refuse: no
  - malformed: bad_json
  - fail: auth
  - sleep: 5
  - hang: true
  - spin: 10
  - crash: SIGKILL
  - flood_stdout: 100
  - flood_stderr: {bytes: 5, line: 0}
  - flood_log: 3
  - fork: setsid
  - fork: {kinds: [holds_stdout, ignores_sigterm], seconds: 9}
  - garbage: {hex: "ff fe"}
  - final: done
`,
      'p.yaml',
    );
    const turns = book.cases[0]?.turns ?? [];
    expect(turns.map((turn) => turn.action.kind)).toEqual([
      ...['text', 'tool', 'calls', 'loop', 'refuse', 'malformed', 'fail', 'sleep', 'hang', 'spin'],
      ...['crash', 'flood_stdout', 'flood_stderr', 'flood_log', 'fork', 'fork', 'garbage', 'final'],
    ]);
    expect(turns.map((turn) => turn.repeat).slice(0, 4)).toEqual([2, 1, 1, Number.POSITIVE_INFINITY]);
    expect(turns[1]?.tokens).toEqual({ in: 10, out: 2 });
    expect(turns[2]?.action.value).toEqual([
      { name: 'x', arguments: {} },
      { name: 'y', arguments: {} },
    ]);
    expect(turns[11]?.action.value).toEqual({ bytes: 100, line: null });
    expect(turns[14]?.action.value).toEqual({ kinds: ['setsid'], seconds: 600 });
  });

  test('cases carry what the event must match', () => {
    const book = parsePlaybook(
      'cases:\n  - when: {uri: "inbox://**"}\n    turns: [{final: a}]\n  - turns: [{final: b}]\n',
      'p.yaml',
    );
    expect(book.cases.map((entry) => entry.uri)).toEqual(['inbox://**', null]);
  });

  test.each([
    ['turns:\n  - finl: x\n', 'playbook p.yaml:2:5: turns[0].finl: Unrecognized key: "finl"'],
    ['turns:\n  - final: x\n    text: y\n', 'playbook p.yaml:2:5: turns[0]: a turn has exactly one action'],
    ['turns:\n  - repeat: 3\n', 'playbook p.yaml:2:5: turns[0]: a turn has exactly one action'],
    [
      'turns:\n  - final: "{{event.url}}"\n',
      'playbook p.yaml:2:5: turns[0].final: {{event.url}} is no template',
    ],
    [
      'turns:\n  - tool: {name: a, arguments: {x: ["{{foo}}"]}}\n',
      'playbook p.yaml:2:37: turns[0].tool.arguments.x[0]: {{foo}} is no template',
    ],
    ['turns: [\n', 'playbook p.yaml:2:1: Flow sequence'],
    ['', 'playbook p.yaml:1:1: '],
    ['just text', 'playbook p.yaml:1:1: '],
    ['turns: []\n', 'playbook p.yaml:1:1: turns: '],
    ['turns: [{final: a}]\ncases: [{turns: [{final: a}]}]\n', 'playbook p.yaml:1:1: a playbook has either'],
    ['turns:\n  - crash: 999\n', 'playbook p.yaml:2:5: turns[0].crash: '],
    ['turns:\n  - flood_stdout: {bytes: 0, line: 3}', 'playbook p.yaml:2:20: turns[0].flood_stdout.bytes: '],
    ['a: &a [*a, *a]\nturns: *a', 'playbook p.yaml:2:1: turns[0]: '],
  ])('%j is refused where it is wrong', (text, message) => {
    expect(problemOf(text)).toContain(message);
  });

  test('an alias bomb is refused before it is expanded', () => {
    const levels = Array.from({ length: 12 }, (_, level) =>
      level === 0 ? 'l0: &l0 [x, x, x, x]' : `l${level}: &l${level} [${`*l${level - 1}, `.repeat(8)}]`,
    );
    expect(problemOf(levels.join('\n'))).toMatch(/alias/i);
  });
});

describe('playbook templates', () => {
  const lookup = (name: string): string => (name === 'last.text' ? 'ab🦀cd' : `<${name}>`);

  test('slots are replaced, anything else is kept', () => {
    expect(renderTemplate('{{event.uri}} {{ run_id }} { {x} }', lookup)).toBe('<event.uri> <run_id> { {x} }');
  });

  test('first:N counts characters and never tears a surrogate pair', () => {
    expect(renderTemplate('{{last.text|first:3}}', lookup)).toBe('ab🦀');
    expect(renderTemplate('{{last.text | first:99}}', lookup)).toBe('ab🦀cd');
    expect(renderTemplate('{{last.text|first:0}}', lookup)).toBe('');
  });

  test('what is put in is not looked at again', () => {
    expect(renderTemplate('{{last.text}}', () => '{{run_id}}')).toBe('{{run_id}}');
  });

  test('strings inside a value are rendered, keys and other values are not', () => {
    expect(renderValue({ '{{run_id}}': ['{{run_id}}', 1, null, { a: '{{agent_path}}' }] }, lookup)).toEqual({
      '{{run_id}}': ['<run_id>', 1, null, { a: '<agent_path>' }],
    });
  });

  test('a name or filter that does not exist is a problem, named', () => {
    expect(templateProblem('{{last.text|upper}}')).toContain('{{last.text|upper}}');
    expect(templateProblem('{{}}')).toContain('{{}}');
    expect(templateProblem('{{last.text|first:10}} and {{instruction}}')).toBeNull();
  });
});
