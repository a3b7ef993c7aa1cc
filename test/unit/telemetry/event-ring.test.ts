import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EVENT_NAMES, type EventLine, eventsPage, LOG_LEVELS } from '../../../protocol/event-line.ts';
import { EventRing, eventsQuery } from '../../../supervisor/telemetry/event-ring.ts';

const line = (fields: Partial<EventLine> = {}): EventLine => ({
  ts: '2026-01-01T00:00:00.000Z',
  level: 'info',
  event: 'loop.step',
  run_id: 'R',
  agent_id: 'sup',
  agent_path: '0',
  comp: 'supervisor',
  pid: 1,
  ...fields,
});

describe('the event ring', () => {
  it('is empty and says so before the first line', () => {
    const page = new EventRing(4).read();
    expect(page).toEqual({ events_schema: '1.0', oldest_seq: 0, newest_seq: 0, dropped: 0, events: [] });
    expect(() => eventsPage.parse(page)).not.toThrow();
  });

  it('gives a reader with a cursor every line once, or counts what it missed', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 8 }),
        fc.array(fc.oneof(fc.constant('append' as const), fc.constant('read' as const)), { maxLength: 80 }),
        (capacity, steps) => {
          const ring = new EventRing(capacity);
          let written = 0;
          let got = 0;
          let missed = 0;
          let cursor = 0;
          for (const step of [...steps, 'read' as const]) {
            if (step === 'append') {
              ring.append(line({ n: ++written }));
              continue;
            }
            const page = ring.read({ after: cursor });
            expect(() => eventsPage.parse(page)).not.toThrow();
            missed += page.dropped;
            got += page.events.length;
            expect(page.events.length).toBeLessThanOrEqual(capacity);
            for (const [index, event] of page.events.entries()) {
              expect(event.seq).toBe(cursor + page.dropped + index + 1);
              expect(event.n).toBe(event.seq);
            }
            cursor = page.newest_seq;
          }
          expect(got + missed).toBe(written);
        },
      ),
    );
  });

  it('filters by least level and by event prefix', () => {
    const ring = new EventRing(1000);
    for (const level of LOG_LEVELS) for (const event of EVENT_NAMES) ring.append(line({ level, event }));
    const page = ring.read({ level: 'warn', prefixes: ['claim.', 'drain.start'] });
    const expected = EVENT_NAMES.filter((name) => name.startsWith('claim.') || name === 'drain.start');
    expect(page.events.filter((event) => event.level === 'error').map((event) => event.event)).toEqual(
      expected,
    );
    expect(page.events.every((event) => ['warn', 'error'].includes(event.level))).toBe(true);
  });

  it('gives nothing to a cursor ahead of it, as after a restart, and shows its own newest', () => {
    const ring = new EventRing(4);
    ring.append(line());
    expect(ring.read({ after: 900 })).toMatchObject({ newest_seq: 1, dropped: 0, events: [] });
  });

  it('ends a page that grows too large where the reader can go on', () => {
    const ring = new EventRing(200);
    for (let i = 0; i < 150; i++) ring.append(line({ pad: 'x'.repeat(60_000) }));
    const seen: number[] = [];
    let pages = 0;
    for (let cursor = 0; cursor < 150; pages++) {
      const page = ring.read({ after: cursor });
      seen.push(...page.events.map((event) => event.seq));
      cursor = page.more ? (page.events.at(-1)?.seq ?? 0) : page.newest_seq;
    }
    expect(seen).toEqual(Array.from({ length: 150 }, (_, index) => index + 1));
    expect(pages).toBeGreaterThan(1);
  });

  it('tells listeners of new lines until they leave', () => {
    const ring = new EventRing(4);
    let told = 0;
    const leave = ring.onAppend(() => {
      told += 1;
    });
    ring.append(line());
    leave();
    ring.append(line());
    expect(told).toBe(1);
  });

  it('reads its query leniently', () => {
    const read = (text: string) => eventsQuery(new URLSearchParams(text));
    expect(read('after=12&level=warn&event=claim.,drain.')).toEqual({
      after: 12,
      level: 'warn',
      prefixes: ['claim.', 'drain.'],
    });
    expect(read('after=-1&level=loud&event=,')).toEqual({});
    expect(read('after=99999999999999999999')).toEqual({});
  });
});
