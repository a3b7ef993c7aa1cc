import { afterEach, describe, expect, test } from 'vitest';
import { MAX_FRAME_BYTES } from '../../../protocol/frames.ts';
import { DrivenChild, type DriverOptions, runStart } from '../../helpers/child-driver.ts';
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

const HANG = 'turns: [{hang: true}]';

describe('bad input to a real child', () => {
  test('lines that are no frames are skipped: it still answers and still works', async () => {
    const child = start();
    await child.ready();
    child.write('banner\n\n42\nnull\n{"jsonrpc":"2.0"}\n');
    child.write(Buffer.from([0xff, 0xfe, 0x0a]));
    child.write('{"id":1,"method":"no.such.request"}\n{"method":"run.start","params":{"run_id":1}}\n');
    await child.ping();
    await child.until('a complaint', () => /a frame was not understood/.test(child.stderr) || undefined);
    child.send(runStart('script:final'));
    expect((await child.result()).status).toBe('completed');
  });

  test('a run frame of another build fails that run by name, instead of leaving it to its deadline', async () => {
    const child = start();
    child.write('{"method":"run.start","params":{"run_id":"run-9","kind":"dance"}}\n');
    const result = await child.result();
    expect(result).toMatchObject({ run_id: 'run-9', status: 'crashed', error: { type: 'FRAME_INVALID' } });
    expect(result.error?.message).toMatch(/^the run cannot begin, .*params\./);
    expect((await child.exited).code).toBe(0);
  });

  test('responses to requests it never made, and a second answer, change nothing', async () => {
    const child = start({ onRequest: () => null });
    child.send(runStart(playbookFile('turns: [{tool: {name: test__echo}}, {final: "{{last.text}}"}]')));
    const { id } = await child.request('tool.call');
    child.respond(4711, { text: 'wrong', is_error: false });
    child.respond(id, { text: 'first', is_error: false });
    child.respond(id, { text: 'second', is_error: false });
    expect((await child.result()).result).toBe('first');
  });

  test('a second run.start and a wake of a run are refused; the run goes on', async () => {
    const child = start();
    child.send(runStart(playbookFile('turns: [{sleep: 200}, {final: x}]')));
    child.send(runStart('script:final:other', { run_id: 'run-2' }));
    child.send({ method: 'session.wake', params: { run_id: 'run-1', sequence: 1, uris: [], messages: [] } });
    expect(await child.result()).toMatchObject({ run_id: 'run-1', result: 'x' });
    const complaints = child.frames.filter(
      (f) => f.type === 'notification' && f.body.method === 'log' && f.body.params.event === 'loop.error',
    );
    expect(complaints).toHaveLength(2);
  });

  test('a line past the frame cap means there is no supervisor any more', async () => {
    const child = start();
    child.send(runStart(playbookFile(HANG)));
    await child.notification('run.progress');
    child.write(Buffer.alloc(MAX_FRAME_BYTES + 1024, 'x'));
    expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' });
  });

  test('frames chopped into single bytes are put together', async () => {
    const child = start();
    await child.ready();
    const frame = JSON.stringify({ jsonrpc: '2.0', ...runStart('script:final:é\u2028🦀') });
    for (const byte of Buffer.from(`${frame}\n`)) child.write(Buffer.from([byte]));
    expect((await child.result()).result).toBe('é\u2028🦀');
  });

  test('a tool result of many megabytes is cut before the model sees it', async () => {
    const child = start({ onRequest: () => ({ text: 'z'.repeat(12_000_000), is_error: false }) });
    child.send(runStart(playbookFile('turns: [{tool: {name: test__echo}}, {final: "{{last.text}}"}]')));
    const { result } = await child.result();
    expect(Buffer.byteLength(result)).toBeLessThanOrEqual(64 * 1024);
    expect(result).toMatch(/characters cut/);
  });

  test('a supervisor that stops reading for a while gets every frame that matters later', async () => {
    const child = start();
    await child.ready();
    child.setReading(false);
    const telemetry = { instance: 'i', traceparent: '', log_level: 'trace', log_content: true };
    const script = 'turns: [{tool: {name: test__echo, arguments: {a: "{{instruction}}"}}}, {final: done}]';
    child.send(runStart(playbookFile(script), { telemetry, instruction: 'i'.repeat(3_000_000) }));
    child.setReading(true);
    expect((await child.result()).result).toBe('done');
  });

  test('arguments past the frame cap are an error result, and the run goes on', async () => {
    const child = start();
    const script = `
turns:
  - tool: {name: test__echo, arguments: {a: "{{instruction}}", b: "{{instruction}}"}}
  - final: "{{last.text}}"
`;
    child.send(runStart(playbookFile(script), { instruction: 'i'.repeat(9_000_000) }));
    expect((await child.result()).result).toBe('the arguments of test__echo are too large');
  });

  test('what a library prints on stdout goes to stderr and tears no frame', async () => {
    // A preload stands for the library: it prints before and during the run.
    const preload = `data:text/javascript,${encodeURIComponent(
      "setTimeout(() => console.log('LIBRARY BANNER'), 0); setInterval(() => process.stdout.write('tick '), 5).unref();",
    )}`;
    const { CHILD_PROGRAM } = await import('../../helpers/child-driver.ts');
    const child = start({ command: [process.execPath, '--import', preload, CHILD_PROGRAM] });
    child.send(runStart(playbookFile('turns: [{sleep: 100}, {final: x}]')));
    expect((await child.result()).status).toBe('completed');
    expect(child.garbage).toEqual([]);
    expect(child.stderr).toContain('LIBRARY BANNER');
    expect(child.stderr).toContain('tick');
  });
});
