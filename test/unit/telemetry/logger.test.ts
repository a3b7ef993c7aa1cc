import { PassThrough, Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { type EventLine, eventLine } from '../../../protocol/event-line.ts';
import type { LogFields, LogIdentity } from '../../../supervisor/telemetry/log.ts';
import { MAX_VALUE_CHARS } from '../../../supervisor/telemetry/log-values.ts';
import { createLog, type LogOptions } from '../../../supervisor/telemetry/logger.ts';

const identity: LogIdentity = {
  runId: 'R1',
  agentId: 'sup',
  agentPath: '0',
  comp: 'supervisor',
  pid: 42,
};

function capture(options: Partial<LogOptions> = {}) {
  const stream = new PassThrough();
  const log = createLog({ level: 'info', format: 'json', identity, destination: stream, ...options });
  const text = (): string => String(stream.read() ?? '');
  const lines = (): EventLine[] =>
    text()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  return { log, text, lines };
}

/** What one call of `info` with these fields writes. */
function lineOf(fields: LogFields): EventLine {
  const { log, lines } = capture();
  log.info('proc.start', fields);
  const [line] = lines();
  if (line === undefined) throw new Error('no line was written');
  return line;
}

describe('the log', () => {
  it('writes one JSON object a line, canonical fields first and in contract order', () => {
    const { log, text } = capture();
    log.info('proc.ready', { url: 'x', msg: 'hello', dur_ms: 3, span_id: 'b', trace_id: 'a' });
    const raw = text();
    expect(raw.endsWith('}\n')).toBe(true);
    const line = JSON.parse(raw);
    expect(Object.keys(line)).toEqual([
      'ts',
      'level',
      'event',
      'run_id',
      'agent_id',
      'agent_path',
      'comp',
      'pid',
      'trace_id',
      'span_id',
      'dur_ms',
      'msg',
      'url',
    ]);
    expect(() => eventLine.parse(line)).not.toThrow();
    expect(line).toMatchObject({ level: 'info', run_id: 'R1', agent_id: 'sup', pid: 42, msg: 'hello' });
  });

  it('lets no caller overwrite a canonical field', () => {
    const forged = { ts: 'x', level: 'error', event: 'loop.step', run_id: 'y', pid: 1, comp: 'mcp', seq: 9 };
    const line = lineOf({ ...forged, mine: 1, method: 'GET', headers: {}, socket: {} });
    expect(line).toMatchObject({
      level: 'info',
      event: 'proc.start',
      run_id: 'R1',
      pid: 42,
      mine: 1,
      method: 'GET',
    });
    expect(line).not.toHaveProperty('seq');
    expect(line.ts).not.toBe('x');
  });

  it('writes under another identity and trace with as()', () => {
    const { log, lines } = capture();
    log.as({ agentId: 'a1', agentPath: '0.2', comp: 'agent', pid: 7, traceId: 't' }).warn('loop.error');
    expect(lines()[0]).toMatchObject({
      run_id: 'R1',
      agent_id: 'a1',
      agent_path: '0.2',
      comp: 'agent',
      pid: 7,
      trace_id: 't',
    });
  });

  it('leaves out what is below the level, which can change while running', () => {
    const { log, lines } = capture({ level: 'warn' });
    log.info('proc.start');
    log.warn('config.warn');
    log.setLevel('debug');
    log.debug('event.unrouted');
    log.trace('loop.step');
    expect(lines().map((line) => line.event)).toEqual(['config.warn', 'event.unrouted']);
  });

  it('cuts long values and says by how much, never inside a surrogate pair', () => {
    const long = `${'a'.repeat(MAX_VALUE_CHARS - 1)}😀${'b'.repeat(100)}`;
    const text = String(lineOf({ text: long }).text);
    expect(text).toBe(`${'a'.repeat(MAX_VALUE_CHARS - 1)}…[+102]`);
  });

  it('bounds a line whatever is logged', () => {
    const wide = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`k${i}`, 'x'.repeat(10_000)]));
    expect(JSON.stringify(lineOf(wide)).length).toBeLessThan(100_000);
    expect(JSON.stringify(lineOf({ list: Array(100_000).fill('y'.repeat(500)) })).length).toBeLessThan(
      100_000,
    );
  });

  it('survives circular, deep, hostile and odd values', () => {
    const circular: Record<string, unknown> = { name: 'loop' };
    circular.self = circular;
    let deep: unknown = 'bottom';
    for (let i = 0; i < 50; i++) deep = { deep };
    const hostile = {
      get boom(): string {
        throw new Error('no');
      },
      toJSON(): never {
        throw new Error('never called');
      },
    };
    const line = lineOf({
      circular,
      deep,
      hostile,
      nothing: undefined,
      odd: [1n, Number.NaN, () => 1, Buffer.from('abc'), new Map([[1, 2]]), new Date(0)],
    });
    expect(line.circular).toEqual({ name: 'loop', self: '[circular]' });
    expect(JSON.stringify(line.deep)).toContain('[object]');
    expect(line.hostile).toMatchObject({ boom: '[unreadable]' });
    expect(line).not.toHaveProperty('nothing');
    expect(line.odd).toEqual([
      '1',
      null,
      '[function]',
      '[3 bytes]',
      '[Map of 1]',
      '1970-01-01T00:00:00.000Z',
    ]);
  });

  it('writes durations to a tenth of a millisecond, whoever measured them', () => {
    const measured = {
      dur_ms: 12.345678,
      lag_ms: 0.04,
      wait_ms: 1234,
      nested: { age_ms: 99.96, ratio: 0.123456 },
      list: [{ dur_ms: 1.25 }],
      cpu: 0.123456,
    };
    expect(lineOf(measured)).toMatchObject({
      dur_ms: 12.3,
      lag_ms: 0,
      wait_ms: 1234,
      nested: { age_ms: 100, ratio: 0.123456 },
      list: [{ dur_ms: 1.3 }],
      cpu: 0.123456,
    });
    expect(lineOf({ gone_ms: Number.NaN, never_ms: Number.POSITIVE_INFINITY })).toMatchObject({
      gone_ms: null,
      never_ms: null,
    });
  });

  it('reduces an error to its type and message and does not invent a msg', () => {
    const line = lineOf({ err: Object.assign(new TypeError('bad'), { type: 'TypeError' }) });
    expect(line.err).toEqual({ type: 'TypeError', message: 'bad' });
    expect(line).not.toHaveProperty('msg');
  });

  it('takes credentials out of keys, URLs and header-like text', () => {
    const text = JSON.stringify(
      lineOf({
        authorization: 'Bearer abc123',
        headers: { 'X-Api-Key': 'abc123', Cookie: 'abc123' },
        url: 'https://user:abc123@host/path',
        note: 'sent Authorization: Bearer abc123, twice',
        token: 'abc123',
      }),
    );
    expect(text).not.toContain('abc123');
    expect(lineOf({ tokens_in: 5, token: 7 })).toMatchObject({ tokens_in: 5, token: 7 });
  });

  it('hands every line to the ring as it is written', () => {
    const seen: EventLine[] = [];
    const { log, lines } = capture({ onLine: (line) => seen.push(line) });
    log.info('proc.start', { n: 1 });
    log.debug('loop.step');
    expect(seen).toEqual(lines());
  });

  it('never throws when the ring does', () => {
    const { log, lines } = capture({
      onLine: () => {
        throw new Error('ring');
      },
    });
    expect(() => log.info('proc.start')).not.toThrow();
    expect(lines()).toHaveLength(1);
  });

  it('drops and counts lines a stuck stream does not take, without growing', () => {
    const stuck = new Writable({ write() {}, highWaterMark: 1 });
    let told = 0;
    const log = createLog({
      level: 'info',
      format: 'json',
      identity,
      destination: stuck,
      maxWaiting: 10_000,
      onDropped: (count) => {
        told += count;
      },
    });
    for (let i = 0; i < 1000; i++) log.info('loop.step', { i });
    expect(log.dropped).toBeGreaterThan(900);
    expect(told).toBe(log.dropped);
    expect(stuck.writableLength).toBeLessThanOrEqual(10_000);
  });

  it('flushes within its budget even when nothing is taken', async () => {
    const log = createLog({
      level: 'info',
      format: 'json',
      identity,
      destination: new Writable({ write() {} }),
    });
    log.info('proc.exit');
    await expect(log.flush(20)).resolves.toBeUndefined();
  });

  it('counts lines to a destroyed stream as dropped', () => {
    const gone = new PassThrough();
    gone.destroy();
    const log = createLog({ level: 'info', format: 'json', identity, destination: gone });
    log.info('proc.start');
    expect(log.dropped).toBe(1);
  });
});

describe('the text format', () => {
  it('is one readable line: time, level, path, event, message, key=value, error', () => {
    const { log, text } = capture({ format: 'text' });
    log.as({ agentPath: '0.3' }).error('tool.result', {
      msg: 'failed',
      ok: false,
      uri: 'inbox:///a.md',
      note: 'two words',
      err: { type: 'E', message: 'x' },
    });
    expect(text()).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} ERROR 0\.3 +tool\.result +failed ok=false uri=inbox:\/\/\/a\.md note="two words" E: x\n$/,
    );
  });

  it('escapes control characters, so that a peer cannot steer the terminal or forge a line', () => {
    const { log, text } = capture({ format: 'text', color: false });
    log.info('tool.result', { msg: 'a\u001b[2Jb\nproc.exit', note: '\u2028\u009b' });
    const line = text();
    expect(line.match(/\n/g)).toHaveLength(1);
    expect(line).not.toContain('\u001b');
    expect(line).toContain('\\u001b[2Jb\\u000aproc.exit');
  });

  it('is coloured when asked to be', () => {
    const { log, text } = capture({ format: 'text', color: true });
    log.warn('config.warn');
    expect(text()).toContain('\u001b[33mWARN \u001b[0m');
  });
});
