import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventLine } from '../../../protocol/event-line.ts';
import { type Ended, runAgentd } from '../../helpers/run-agentd.ts';

let dir = '';
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'agentd-cli-'));
  writeFileSync(join(dir, 'broken.yaml'), 'limits:\n  max_step: 5\n');
  writeFileSync(join(dir, 'malformed.yaml'), 'limits: [\n');
  writeFileSync(join(dir, 'unset.yaml'), 'agent:\n  instruction: ${NOPE}\n');
});
afterAll(() => rmSync(dir, { recursive: true }));

/** The one line a refused configuration leaves. */
function onlyLine({ stdout, stderr }: Ended): ReturnType<typeof eventLine.parse> {
  expect(stdout).toBe('');
  const lines = stderr.split('\n').filter((line) => line !== '');
  expect(lines).toHaveLength(1);
  return eventLine.parse(JSON.parse(lines[0] ?? ''));
}

const MODEL = ['--intelligence', 'script:final'];
const RUN = [...MODEL, '--instruction', 'x'];

describe('a mistake in the configuration is one config.invalid line and exit 2', () => {
  it.each([
    ['a bare call with nothing', [], 'no model endpoint is configured'],
    ['run without an instruction', ['run', ...MODEL], 'once mode has no instruction'],
    ['supervise with nothing to react to', ['supervise', ...RUN], 'nothing to react to'],
    ['a shard 3/3', ['supervise', ...RUN, '--shard', '3/3'], '--shard: shard 3 does not exist among 3'],
    ['a shard 010/8', ['run', ...RUN, '--shard', '010/8'], '"010/8" is not K/N'],
    ['an unknown flag', ['supervise', '--mod', 'once'], "unknown option '--mod' (did you mean --mode?)"],
    ['a flag without its value', ['--mode'], "'--mode <MODE>' argument missing"],
    ['a stray argument', ['supervise', ...RUN, 'stray'], 'too many arguments'],
    [
      'an unknown key',
      ['--config', 'broken.yaml', ...RUN],
      'broken.yaml:2:3: limits: unknown key "max_step" (did you mean max_steps?)',
    ],
    ['a malformed file', ['--config', 'malformed.yaml', ...RUN], 'malformed.yaml:2:1: not valid YAML'],
    [
      'an unset variable',
      ['--config', 'unset.yaml', ...MODEL],
      'unset.yaml:2:16: the environment variable NOPE is not set',
    ],
    [
      'a claim at no server',
      ['supervise', ...RUN, '--claim', 'a://b=gone'],
      'MCP server gone, which is not declared',
    ],
    ['an instruction given twice', ['run', 'one', '--instruction', 'two', ...MODEL], 'given twice'],
    [
      'http off loopback',
      ['run', 'x', '--intelligence', 'http://10.1.2.3'],
      'http:// is only allowed on loopback',
    ],
    [
      'an invalid configuration to validate',
      ['--validate-config', ...RUN, '--max-steps', 'x'],
      '--max-steps: limits.max_steps',
    ],
  ])('%s', async (_name, args, named) => {
    const ended = await runAgentd(args, { cwd: dir });
    const line = onlyLine(ended);
    expect(line).toMatchObject({ level: 'error', event: 'config.invalid', agent_id: 'sup', agent_path: '0' });
    expect(line.err?.message).toContain(named);
    expect(line.remedy).toEqual(expect.any(String));
    expect(JSON.stringify(line)).not.toMatch(/\bat .*\.ts:/);
    expect(ended.code).toBe(2);
  });

  it('keeps the run id it was given', async () => {
    const line = onlyLine(await runAgentd(['--run-id', 'mine', '--instruction', 'x']));
    expect(line.run_id).toBe('mine');
  });

  it('is readable text when text is asked for', async () => {
    const { stderr, code } = await runAgentd(['--log-format', 'text', ...RUN, '--shard', '3/3']);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(stderr).toContain('config.invalid');
    expect(stderr).toContain('shard 3 does not exist among 3');
    expect(code).toBe(2);
  });
});

describe('a mistake outside the engine is two plain lines and exit 2', () => {
  it('for an unknown verb, with the verb that was meant', async () => {
    const { code, stdout, stderr } = await runAgentd(['supervice']);
    expect(stderr).toMatch(
      /^agentd: there is no verb "supervice" \(did you mean supervise\?\)\n {2}The verbs are supervise, run, .*\n$/,
    );
    expect(stdout).toBe('');
    expect(code).toBe(2);
  });

  it('for an unknown flag of another verb', async () => {
    const { code, stderr } = await runAgentd(['inbox', '--lissten', 'http://127.0.0.1:0', '.']);
    expect(stderr).toMatch(/^agentd: unknown option '--lissten' \(did you mean --listen\?\)\n {2}\S.*\n$/);
    expect(code).toBe(2);
  });
});
