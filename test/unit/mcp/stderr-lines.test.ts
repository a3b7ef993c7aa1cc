import { describe, expect, it } from 'vitest';
import { StderrLines } from '../../../supervisor/mcp/stderr-lines.ts';
import { ManualClock } from '../../helpers/manual-clock.ts';

describe('the stderr of a server', () => {
  it('is cut into lines, whatever the chunks', () => {
    const lines: string[] = [];
    const stderr = new StderrLines(new ManualClock(), (line) => lines.push(line));
    for (const chunk of ['one\r\ntw', 'o\n', '\n\nthr', 'ee']) stderr.feed(Buffer.from(chunk));
    expect(lines).toEqual(['one', 'two']);
    stderr.end();
    expect(lines).toEqual(['one', 'two', 'three']);
    expect(stderr.last).toBe('three');
  });

  it('is bounded in length and in rate, and the last line is known all the same', () => {
    const lines: string[] = [];
    const clock = new ManualClock();
    const stderr = new StderrLines(clock, (line) => lines.push(line));
    for (let n = 0; n < 1_000; n++) stderr.feed(Buffer.from(`line ${n}\n`));
    expect(lines).toHaveLength(50);
    expect(stderr.suppressed).toBe(950);
    expect(stderr.last).toBe('line 999');
    clock.advance(1_000);
    for (let n = 0; n < 100; n++) stderr.feed(Buffer.alloc(10_000, 'x'));
    stderr.feed(Buffer.from('\n'));
    expect(lines).toHaveLength(51);
    expect(lines.at(-1)).toHaveLength(8_192);
  });
});
