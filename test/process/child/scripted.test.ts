import { afterEach, describe, expect, test } from 'vitest';
import { parsePlaybook } from '../../../protocol/playbook.ts';
import { DrivenChild, runStart } from '../../helpers/child-driver.ts';
import { playbookFile, removePlaybooks } from './playbook-file.ts';

const children: DrivenChild[] = [];

function play(script: string, overrides: Parameters<typeof runStart>[1] = {}): DrivenChild {
  const child = new DrivenChild();
  children.push(child);
  child.send(runStart(script.startsWith('script:') ? script : playbookFile(script), overrides));
  return child;
}

afterEach(async () => {
  for (const child of children.splice(0)) await child.stop();
  removePlaybooks();
});

describe('scripted model in a real child', () => {
  test.each([
    ['refused', 'turns: [{refuse: "cannot do {{event.uri}}"}]'],
    ['exhausted_steps', 'turns: [{tool: {name: test__echo, arguments: {a: 1}}}, {tool: {name: test__echo}}]'],
    ['exhausted_tokens', 'turns: [{tool: {name: test__echo}, tokens: {in: 150, out: 60}}]'],
    ['stalled', 'turns: [{text: hm, repeat: forever}]'],
    ['loop_detected', 'turns: [{loop: {name: test__echo}}]'],
    ['stalled', 'turns: [{malformed: unknown_tool, repeat: forever}]'],
    ['stalled', 'turns: [{malformed: bad_json, repeat: forever}]'],
    ['stalled', 'turns: [{malformed: empty, repeat: forever}]'],
    ['completed', 'turns: [{malformed: bad_json}, {malformed: empty}, {final: recovered}]'],
  ])('ends %s: %s', async (status, script) => {
    const max_steps = status === 'exhausted_steps' ? 2 : 20;
    const limits = { max_steps, max_tokens: 200, deadline_ms: 60_000, tool_timeout_ms: 60_000 };
    const child = play(script, { limits, event: { uri: 'inbox://a', server: 'inbox', sequence: 1 } });
    const result = await child.result();
    expect(result.status).toBe(status);
    if (status === 'refused') expect(result.result).toBe('cannot do inbox://a');
    expect((await child.exited).code).toBe(0);
  });

  test('templates see the event and the last tool result', async () => {
    const script = `
cases:
  - when: {uri: "other://**"}
    turns: [{final: wrong case}]
  - when: {uri: "inbox://**/*.md", server: inb*}
    turns:
      - tool: {name: test__echo, arguments: {uri: "{{event.uri}}", deep: [{server: "{{event.server}}"}]}}
        tokens: {in: 100, out: 7}
      - final: "{{last.text|first:30}}"
  - turns: [{final: no case}]
`;
    const child = play(script, { event: { uri: 'inbox://d/é x.md', server: 'inbox', sequence: 1 } });
    expect(await child.result()).toMatchObject({
      result: '{"uri":"inbox://d/é x.md","dee',
      usage: { tokens_in: 100, tokens_out: 7, steps: 2 },
    });
    const call = await child.request('tool.call');
    expect(call.params.arguments).toEqual({ uri: 'inbox://d/é x.md', deep: [{ server: 'inbox' }] });
  });

  test.each([
    ['turns: [{finl: x}]', 'PLAYBOOK_INVALID', /playbook\.yaml:1:10: turns\[0\]\.finl: Unrecognized key/],
    ['turns: [', 'PLAYBOOK_INVALID', /playbook\.yaml:1:/],
    ['turns: [{tool: {name: test__echo}}]', 'PLAYBOOK_ENDED', /has no turn after number 1/],
    ['cases: [{when: {uri: "x://*"}, turns: [{final: x}]}]', 'PLAYBOOK_ENDED', /has no case for/],
  ])('the playbook %j crashes the run with a named cause', async (script, type, message) => {
    const child = play(script);
    const result = await child.result();
    expect(result).toMatchObject({ status: 'crashed', error: { type } });
    expect(result.error?.message).toMatch(message);
    expect(result.intelligence_failed).toBeUndefined();
    expect(child.stderr).toBe('');
  });

  test('a playbook that is not there crashes the run, and says so without a stack trace', async () => {
    const child = play('script:/no/such/book.yaml');
    const result = await child.result();
    expect(result).toMatchObject({ status: 'crashed', error: { type: 'PLAYBOOK_INVALID' } });
    expect(result.error?.message).toContain('cannot read the playbook /no/such/book.yaml');
    expect(result.error?.message).not.toContain(' at ');
  });

  test.each([
    ['unreachable', 'INTELLIGENCE_UNREACHABLE', true],
    ['auth', 'INTELLIGENCE_AUTH', true],
    ['rejected', 'INTELLIGENCE_REJECTED', undefined],
  ])('fail: %s crashes the run as %s', async (reason, type, failed) => {
    const child = play(`turns: [{fail: ${reason}}]`);
    const result = await child.result();
    expect(result).toMatchObject({ status: 'crashed', error: { type } });
    expect(result.intelligence_failed).toBe(failed);
    const { call } = await child.notification('run.progress', (p) => p.kind === 'model');
    expect(call).toMatchObject({ ok: false, reason: reason === 'rejected' ? 'other' : reason });
  });

  test.each([
    ['crash: 3', { code: 3, signal: null }],
    ['crash: SIGKILL', { code: null, signal: 'SIGKILL' }],
    ['crash: SIGSEGV', { code: null, signal: 'SIGSEGV' }],
  ])('%s ends the process that way, without a result', async (action, exit) => {
    const child = play(`turns: [{${action}}]`);
    expect(await child.exited).toEqual(exit);
    expect(child.frames.some((f) => f.type === 'notification' && f.body.method === 'run.result')).toBe(false);
  });

  test('H19: ten megabytes on stderr come before the result, which still arrives', async () => {
    const child = play('turns: [{flood_stderr: 10000000}, {final: x}]');
    expect((await child.result()).status).toBe('completed');
    await child.exited;
    await child.until('all of stderr', () => (child.stderrBytes >= 10_000_000 ? true : undefined));
  });

  test('H20: a flood on stdout without a newline reaches the cap of the decoder', async () => {
    const child = play('turns: [{flood_stdout: 20000000}, {hang: true}]');
    expect(await child.until('overflow', () => child.overflows[0])).toBeGreaterThan(16 * 1024 * 1024);
  });

  test('garbage between frames is skipped and the run goes on', async () => {
    const script = `
turns:
  - garbage: "Library banner v1"
  - garbage: "null"
  - garbage: {hex: "ff fe 00 0a"}
  - garbage: '{"jsonrpc":"2.0","method":"no.such","params":{}}'
  - final: x
`;
    const child = play(script);
    expect((await child.result()).status).toBe('completed');
    expect(child.garbage).toHaveLength(4);
  });

  test('a log flood of a hundred thousand lines arrives in order and ends', async () => {
    const child = play('turns: [{flood_log: 100000}, {final: x}]');
    expect((await child.result()).status).toBe('completed');
    const floods = child.frames.flatMap((f) =>
      f.type === 'notification' && f.body.method === 'log' && 'flood' in f.body.params.fields
        ? [f.body.params.fields.flood]
        : [],
    );
    expect(floods).toHaveLength(100_000);
    expect(floods.at(-1)).toBe(99_999);
  });

  test('a spin blocks the event loop: no pong comes, and only SIGKILL ends it', async () => {
    const child = play('turns: [{spin: true}, {final: x}]');
    await child.notification('run.progress', (p) => p.kind === 'step');
    await expect(child.ping(1000)).rejects.toThrow(/no pong/);
    child.signal('SIGKILL');
    expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' });
  });

  test('H03: a grandchild that holds stdout does not keep the child from ending', async () => {
    const child = play('turns: [{fork: [holds_stdout, ignores_sigterm]}, {final: x}]');
    expect((await child.result()).status).toBe('completed');
    expect((await child.exited).code).toBe(0);
  });
});

describe('shipped playbooks', () => {
  test('the example in docs/playbooks.md is a playbook', async () => {
    const { readFileSync } = await import('node:fs');
    const guide = readFileSync(new URL('../../../docs/playbooks.md', import.meta.url), 'utf8');
    const examples = [...guide.matchAll(/```yaml\n([\s\S]*?)```/g)].map((match) => match[1] ?? '');
    expect(examples.length).toBeGreaterThan(0);
    for (const example of examples) expect(parsePlaybook(example, 'docs').cases.length).toBeGreaterThan(0);
  });

  test('those of examples/inbox are playbooks', async () => {
    const { readFileSync } = await import('node:fs');
    for (const name of ['playbook.yaml', 'slow-playbook.yaml']) {
      const text = readFileSync(new URL(`../../../examples/inbox/${name}`, import.meta.url), 'utf8');
      expect(parsePlaybook(text, name).cases[0]?.turns.at(-1)?.action.kind).toBe('final');
    }
  });
});
