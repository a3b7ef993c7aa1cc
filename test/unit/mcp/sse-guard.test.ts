import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SizeGuard, SseGuard } from '../../../supervisor/mcp/sse-guard.ts';

const bytes = (text: string): Buffer => Buffer.from(text, 'utf8');

/** Feeds `text` cut at the given places. */
function feed(guard: SseGuard, text: string, cuts: readonly number[] = []): void {
  const all = bytes(text);
  let from = 0;
  for (const cut of [...cuts].map((at) => at % (all.length + 1)).sort((a, b) => a - b)) {
    guard.feed(all.subarray(from, Math.max(from, cut)));
    from = Math.max(from, cut);
  }
  guard.feed(all.subarray(from));
}

describe('the guard of an event stream', () => {
  it('bounds one event, not the stream', () => {
    const guard = new SseGuard(100);
    for (let n = 0; n < 1_000; n++) feed(guard, `data: ${'x'.repeat(80)}\n\n`);
    expect(() => feed(guard, `data: ${'x'.repeat(100)}\n\n`)).toThrow(/exceeds the cap of 100 bytes/);
  });

  it('bounds an event of many short lines and one that never ends', () => {
    expect(() => feed(new SseGuard(100), 'data: x\n'.repeat(20))).toThrow(/cap/);
    const endless = new SseGuard(1_000);
    expect(() => {
      for (;;) feed(endless, 'xxxxxxxxxx');
    }).toThrow(/cap/);
  });

  it('takes CRLF for a line end', () => {
    const guard = new SseGuard(30);
    for (let n = 0; n < 100; n++) feed(guard, 'data: 0123456789\r\n\r\n');
    expect(guard.resumable).toBe(false);
  });

  it('judges the same however the bytes are cut', () => {
    const event = fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 60 })).map(([withId, size]) => {
      return `${withId ? 'id: 7\n' : ''}data: ${'é'.repeat(size)}\n\n`;
    });
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 8 }),
        fc.array(fc.nat(500), { maxLength: 8 }),
        (events, cuts) => {
          const judge = (places: readonly number[]): string => {
            const guard = new SseGuard(80);
            try {
              feed(guard, events.join(''), places);
              return `passes, resumable ${guard.resumable}`;
            } catch {
              return 'fails';
            }
          };
          expect(judge(cuts)).toBe(judge([]));
        },
      ),
    );
  });

  it('knows a stream whose events carry ids', () => {
    const with_ = new SseGuard(1_000);
    feed(with_, ': hello\n\nid: 1\ndata: {}\n\n');
    expect(with_.resumable).toBe(true);
    const without = new SseGuard(1_000);
    feed(without, 'data: id: 1\n\nidle: 2\niid: 3\n\n');
    expect(without.resumable).toBe(false);
  });

  it('counts a plain body as a whole', () => {
    const guard = new SizeGuard(10);
    guard.feed(bytes('12345'));
    guard.feed(bytes('67890'));
    expect(() => guard.feed(bytes('x'))).toThrow(/answer .* cap of 10 bytes/);
  });
});
