import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EventLine } from '../../../protocol/event-line.ts';
import { AGGREGATED_TEXT, LogRelay, SAMPLED_TEXT } from '../../../supervisor/children/log-relay.ts';
import { pathColor, pathFilter } from '../../../supervisor/telemetry/aggregate.ts';
import { textLine } from '../../../supervisor/telemetry/log-text.ts';
import { createLog } from '../../../supervisor/telemetry/logger.ts';
import { ManualClock } from '../../helpers/manual-clock.ts';
import { recordingLog } from '../../helpers/null-log.ts';

const LINE = {
  ts: '2026-03-01T12:34:56.789Z',
  level: 'info',
  event: 'subagent.exit',
  agent_path: '0.2',
  run_id: 'R',
} as const;
const path = fc.array(fc.nat(99), { minLength: 1, maxLength: 6 }).map((numbers) => numbers.join('.'));

describe('the text format', () => {
  it('stands in columns, the duration last, nothing for what says nothing', () => {
    expect(
      textLine(
        {
          ...LINE,
          dur_ms: 1596,
          cause: null,
          unstopped: [],
          sha256: 'abc',
          usage: { steps: 2, sha256: 'x' },
        },
        false,
      ),
    ).toBe('12:34:56.789 INFO  0.2    subagent.exit    usage.steps=2 (1.6 s)\n');
    expect(
      textLine({ ...LINE, level: 'warn', msg: 'careful', err: { type: 'E', message: 'm' } }, false),
    ).toBe('12:34:56.789 WARN  0.2    subagent.exit    careful E: m\n');
  });

  it('says the details, what is wrong, and then in full what to do', () => {
    const remedy = `Do this, ${'and that, '.repeat(40)}then rest.`;
    const line = { ...LINE, level: 'error', remedy, err: { type: 'E', message: 'm' }, server: 's' } as const;
    expect(textLine({ ...line, dur_ms: 5 }, false)).toBe(
      `12:34:56.789 ERROR 0.2    subagent.exit    server=s E: m (5 ms) → ${remedy}\n`,
    );
  });

  it('ends with the page of an error that has one, where the line says nothing of what to do', () => {
    const err = { type: 'INTELLIGENCE_UNREACHABLE', message: 'm' };
    expect(textLine({ ...LINE, level: 'warn', err }, false)).toBe(
      '12:34:56.789 WARN  0.2    subagent.exit    INTELLIGENCE_UNREACHABLE: m → agentd help INTELLIGENCE_UNREACHABLE\n',
    );
    expect(textLine({ ...LINE, err, remedy: 'Do this.' }, false)).toMatch(/: m → Do this\.\n$/);
    expect(textLine({ ...LINE, err: { type: 'toString', message: 'm' } }, false)).toMatch(/: m\n$/);
  });

  it('shows what a child wrote as it was written, without what would steer the terminal', () => {
    const line = { ...LINE, event: 'loop.error', stream: 'stderr' };
    expect(textLine({ ...line, msg: '\u001b[31mred\u001b[0m = 1' }, false)).toBe(
      '12:34:56.789       0.2    │ red = 1\n',
    );
    expect(textLine({ ...line, msg: 'a\rb\u0007' }, false)).toContain('a\\u000db\\u0007');
  });

  it('cuts a long value and says so', () => {
    const text = textLine({ ...LINE, content: 'x'.repeat(10_000) }, false);
    expect(text.length).toBeLessThan(300);
    expect(text).toContain('…');
  });

  it('is one line whatever it is given', () => {
    fc.assert(
      fc.property(fc.string(), fc.jsonValue(), (msg, value) => {
        const text = textLine({ ...LINE, msg, value, stream: 'stderr' }, true);
        expect(text.indexOf('\n')).toBe(text.length - 1);
      }),
    );
  });

  it('gives each path one colour, and neighbours different ones', () => {
    expect(pathColor('0')).toBeNull();
    fc.assert(
      fc.property(path, fc.nat(50), (parent, number) => {
        const [one, next] = [pathColor(`${parent}.${number}`), pathColor(`${parent}.${number + 1}`)];
        expect(one).not.toBeNull();
        expect(one).not.toBe(next);
        expect(pathColor(`${parent}.${number}`)).toBe(one);
      }),
    );
    const painted = textLine(LINE, true);
    expect(painted).toContain(`\u001b[38;5;${pathColor('0.2')}m0.2   \u001b[0m`);
  });
});

describe('the filter by agent path', () => {
  it('keeps an agent and what is below it, and nothing beside it', () => {
    const only = pathFilter(['0.2', '0.31']);
    expect(['0.2', '0.2.1', '0.2.1.7', '0.31'].every(only)).toBe(true);
    expect(['0', '0.3', '0.20', '0.1.0.2'].some(only)).toBe(false);
    expect(pathFilter([])('0.9')).toBe(true);
  });

  it('hides lines from the stream and not from the ring', () => {
    const stream = new PassThrough();
    const ring: EventLine[] = [];
    const log = createLog({
      level: 'info',
      format: 'json',
      identity: { runId: 'R', agentId: 'sup', agentPath: '0', comp: 'supervisor', pid: 1 },
      destination: stream,
      shown: pathFilter(['0.2']),
      onLine: (line) => ring.push(line),
    });
    log.info('proc.start');
    log.as({ agentPath: '0.2', agentId: 'a' }).info('loop.start');
    expect(String(stream.read())).toMatch(/^\{[^\n]*"loop\.start"[^\n]*\}\n$/);
    expect(ring).toHaveLength(2);
  });
});

describe('the free text of a child', () => {
  it('is sampled, or aggregated in full up to its bound; what is dropped is said', () => {
    for (const [rates, most] of [
      [SAMPLED_TEXT, 100],
      [AGGREGATED_TEXT, 1_000],
    ] as const) {
      const { log, lines } = recordingLog();
      const relay = new LogRelay(log, 42, new ManualClock(), rates);
      for (let i = 0; i < 5_000; i += 1) relay.stderr(`line ${i}`);
      expect(lines).toHaveLength(most);
      expect(lines[0]?.fields).toMatchObject({ msg: 'line 0', stream: 'stderr' });
      relay.tick();
      expect(lines.at(-1)).toMatchObject({ event: 'limit.exceeded', fields: { dropped: 5_000 - most } });
    }
  });

  it('marks a line that was cut', () => {
    const { log, lines } = recordingLog();
    new LogRelay(log, 42, new ManualClock()).stderr('x'.repeat(5_000));
    expect(lines[0]?.fields.msg).toBe(`${'x'.repeat(4_096)}…`);
  });
});
