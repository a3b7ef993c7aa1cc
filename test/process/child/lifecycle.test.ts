import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, test } from 'vitest';
import { DrivenChild, type DriverOptions, ECHO_TOOL, runStart } from '../../helpers/child-driver.ts';
import { eventually } from '../../helpers/eventually.ts';
import { playbookFile, removePlaybooks } from './playbook-file.ts';

const children: DrivenChild[] = [];

function start(options: DriverOptions = {}): DrivenChild {
  const child = new DrivenChild(options);
  children.push(child);
  return child;
}

afterEach(async () => {
  for (const child of children.splice(0)) await child.stop();
  removePlaybooks();
});

/** The processes of a group that are not zombies, by /proc. */
function alive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** The pids of living processes whose parent or group is `pid`. */
function descendants(pid: number): number[] {
  const found = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return found === '' ? [] : found.split(' ').map(Number);
}

describe('child process: life', () => {
  test('ready is the first frame, and a warm child answers pings and leaves with 0 when stdin closes', async () => {
    const child = start();
    const ready = await child.ready();
    expect(ready).toEqual({ protocol_version: 1, pid: child.pid });
    expect(child.frames[0]?.body).toMatchObject({ method: 'ready' });
    await child.ping();
    child.closeStdin();
    expect(await child.exited).toEqual({ code: 0, signal: null });
    expect(child.stderr).toBe('');
  });

  test('a run is played to its result, then the child leaves by itself with 0', async () => {
    const child = start();
    child.send(runStart('script:final:hello from {{run_id}} at {{agent_path}}'));
    expect(await child.result()).toEqual({
      run_id: 'run-1',
      status: 'completed',
      result: 'hello from run-1 at 0',
      has_usable_partial: false,
      usage: { tokens_in: 0, tokens_out: 0, steps: 1, subagents: 0 },
    });
    expect(await child.exited).toEqual({ code: 0, signal: null });
  });

  test('pings are answered while a model call and while a tool call is in flight', async () => {
    const child = start({ onRequest: () => null });
    child.send(runStart(playbookFile('turns: [{tool: {name: test__echo}}, {hang: true}]')));
    const request = await child.request('tool.call');
    await child.ping();
    child.respond(request.id, { text: 'ok', is_error: false });
    await child.notification('run.progress', (p) => p.kind === 'step' && p.usage.steps === 2);
    await child.ping();
    child.send({ method: 'run.cancel', params: { run_id: 'run-1', reason: 'enough' } });
    expect((await child.result()).status).toBe('cancelled');
  });

  test('a cancel reaches a tool call, which is cancelled upstream', async () => {
    const child = start({ onRequest: () => null });
    child.send(runStart(playbookFile('turns: [{tool: {name: test__echo}}, {final: x}]')));
    const { id } = await child.request('tool.call');
    child.send({ method: 'run.cancel', params: { run_id: 'run-1', reason: 'enough' } });
    expect(await child.notification('request.cancel')).toEqual({ id });
    expect((await child.result()).status).toBe('cancelled');
    expect((await child.exited).code).toBe(0);
  });

  test('a cancel for another run is none of its business', async () => {
    const child = start();
    child.send(runStart(playbookFile('turns: [{sleep: 300}, {final: x}]')));
    child.send({ method: 'run.cancel', params: { run_id: 'run-2', reason: 'x' } });
    child.send({ method: 'run.pause', params: { run_id: 'run-2' } });
    expect((await child.result()).status).toBe('completed');
  });

  test('SIGTERM ends a run as cancelled, with what it has', async () => {
    const child = start();
    child.send(runStart(playbookFile('turns: [{text: so far}, {hang: true}]')));
    await child.notification('run.progress', (p) => p.kind === 'step' && p.usage.steps === 2);
    child.signal('SIGTERM');
    expect(await child.result()).toMatchObject({
      status: 'cancelled',
      result: 'so far',
      has_usable_partial: true,
    });
    expect((await child.exited).code).toBe(0);
  });

  test('SIGTERM ends a warm child with 0', async () => {
    const child = start();
    await child.ready();
    child.signal('SIGTERM');
    expect(await child.exited).toEqual({ code: 0, signal: null });
  });

  test('when stdin closes during a run the child goes at once and takes its group along', async () => {
    const child = start();
    child.send(runStart(playbookFile('turns: [{fork: [ordinary, ignores_sigterm]}, {hang: true}]'), {}));
    const grandchild = await eventually('the grandchild', () => descendants(child.pid)[0]);
    child.closeStdin();
    expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' });
    await eventually('the end of the grandchild', () => !alive(grandchild));
  });

  test('a child that leads no group still goes when stdin closes', async () => {
    // Run through a shell that is the leader; the child is an ordinary member.
    const { CHILD_PROGRAM } = await import('../../helpers/child-driver.ts');
    const script = `"${process.execPath}" "${CHILD_PROGRAM}"; echo "code $?" >&2`;
    const child = start({ command: ['/bin/sh', '-c', script] });
    child.send(runStart(playbookFile('turns: [{hang: true}]')));
    await child.notification('run.progress');
    child.closeStdin();
    await child.until('the exit code', () => (child.stderr.includes('code 1') ? true : undefined));
    await child.exited;
  });

  test('when nobody reads its frames any more the child goes too, although stdin is open', async () => {
    const child = start();
    child.send(runStart(playbookFile('turns: [{sleep: 50, repeat: forever}]')));
    await child.notification('run.progress', (p) => p.kind === 'step');
    child.breakStdout();
    // The next frame finds the pipe broken.
    child.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
    expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' });
  });

  test('the deadline ends a run that hangs', async () => {
    const child = start();
    const limits = { max_steps: 5, max_tokens: 100, deadline_ms: 200, tool_timeout_ms: 60_000 };
    child.send(runStart(playbookFile('turns: [{hang: true}]'), { limits }));
    expect((await child.result()).status).toBe('deadline');
  });

  test('a pause during a model call keeps its answer and makes no call until the resume', async () => {
    const child = start();
    child.send(runStart(playbookFile('turns: [{sleep: 200}, {tool: {name: test__echo}}, {final: x}]')));
    await child.notification('run.progress', (p) => p.kind === 'step');
    child.send({ method: 'run.pause', params: { run_id: 'run-1' } });
    await child.notification('run.progress', (p) => p.kind === 'paused');
    await child.ping();
    expect(child.frames.filter((frame) => frame.type === 'request')).toEqual([]);
    child.send({ method: 'run.resume', params: { run_id: 'run-1' } });
    expect(await child.result()).toMatchObject({ status: 'completed', usage: { steps: 2 } });
  });

  test('a wind-down lets the turn end, and its deadline is not waited past', async () => {
    const child = start();
    child.send(runStart(playbookFile('turns: [{sleep: 200}, {tool: {name: test__echo}}, {final: x}]')));
    await child.notification('run.progress', (p) => p.kind === 'step');
    child.send({ method: 'run.wind_down', params: { run_id: 'run-1', deadline_ms: 20_000 } });
    expect(await child.result()).toMatchObject({ status: 'cancelled', usage: { steps: 1 } });
    expect(child.frames.filter((frame) => frame.type === 'request')).toHaveLength(1);

    const stubborn = start();
    stubborn.send(runStart(playbookFile('turns: [{hang: true}]')));
    await stubborn.notification('run.progress', (p) => p.kind === 'step');
    stubborn.send({ method: 'run.wind_down', params: { run_id: 'run-1', deadline_ms: 100 } });
    expect((await stubborn.result()).status).toBe('cancelled');
  });

  test('subagent self-tools go up as self calls, in parallel with ordinary calls', async () => {
    const child = start({
      onRequest: (request) => ({ text: `did ${request.params.name}`, is_error: false }),
    });
    const script = `
turns:
  - calls:
      - {name: subagent_spawn, arguments: {instruction: part one}}
      - {name: test__echo, arguments: {}}
  - final: "{{last.text}}"
`;
    child.send(runStart(playbookFile(script), { self_tools: ['subagent_spawn', 'subagent_status'] }));
    expect(await child.result()).toMatchObject({ result: 'did test__echo', usage: { subagents: 1 } });
    expect(child.frames.flatMap((f) => (f.type === 'request' ? [f.body.method] : []))).toEqual([
      'self.call',
      'tool.call',
    ]);
  });

  test('log frames carry content as hash and length, or itself when that is asked for', async () => {
    const script = 'turns: [{tool: {name: test__echo, arguments: {key: TOPSECRET}}}, {final: TOPSECRET}]';
    const telemetry = {
      instance: 'i',
      traceparent: '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01',
      log_level: 'trace',
    };
    const quiet = start();
    quiet.send(runStart(playbookFile(script), { telemetry: { ...telemetry, log_content: false } }));
    await quiet.result();
    const logOf = (child: DrivenChild): string =>
      JSON.stringify(child.frames.filter((f) => f.type === 'notification' && f.body.method === 'log'));
    expect(logOf(quiet)).toContain('sha256');
    expect(logOf(quiet)).not.toContain('TOPSECRET');
    const open = start();
    open.send(runStart(playbookFile(script), { telemetry: { ...telemetry, log_content: true } }));
    await open.result();
    expect(logOf(open)).toContain('TOPSECRET');
  });

  test('the log level is kept: at warn a healthy run logs nothing', async () => {
    const child = start();
    const telemetry = { instance: 'i', traceparent: '', log_level: 'warn', log_content: false };
    child.send(runStart('script:final', { telemetry, tools: [ECHO_TOOL] }));
    await child.result();
    expect(child.frames.filter((f) => f.type === 'notification' && f.body.method === 'log')).toEqual([]);
  });
});
