import { describe, expect, it } from 'vitest';
import {
  adoptTraceparent,
  childTraceparent,
  newTraceparent,
  parseTraceparent,
  traceIdOf,
} from '../../../supervisor/telemetry/trace.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

describe('the trace context', () => {
  it('reads the example of the specification', () => {
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-01`)).toEqual({
      traceId: TRACE,
      spanId: SPAN,
      sampled: true,
    });
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-00`)?.sampled).toBe(false);
    expect(parseTraceparent(`cc-${TRACE}-${SPAN}-01-what-the-future-holds`)).toMatchObject({
      traceId: TRACE,
    });
  });

  it.each([
    ['another case', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ['an all-zero trace', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['an all-zero span', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['version ff', `ff-${TRACE}-${SPAN}-01`],
    ['more fields than version 00 has', `00-${TRACE}-${SPAN}-01-x`],
    ['a short trace', `00-${TRACE.slice(1)}-${SPAN}-01`],
    ['a newline', `00-${TRACE}-${SPAN}-01\n`],
    ['nothing', ''],
  ])('ignores a value with %s and mints a new one', (_what, text) => {
    expect(parseTraceparent(text)).toBeNull();
    const minted = adoptTraceparent(text);
    expect(parseTraceparent(minted)).not.toBeNull();
    expect(minted).not.toContain(TRACE);
  });

  it('adopts a valid value as it is', () => {
    expect(adoptTraceparent(`00-${TRACE}-${SPAN}-00`)).toBe(`00-${TRACE}-${SPAN}-00`);
    expect(traceIdOf(`00-${TRACE}-${SPAN}-00`)).toBe(TRACE);
    expect(traceIdOf('nonsense')).toBeNull();
  });

  it('puts a child into the trace of its parent, with a span of its own', () => {
    const child = childTraceparent(`00-${TRACE}-${SPAN}-00`);
    expect(parseTraceparent(child)).toMatchObject({ traceId: TRACE, sampled: false });
    expect(child).not.toContain(SPAN);
    expect(parseTraceparent(childTraceparent('nonsense'))).not.toBeNull();
  });

  it('mints different traces', () => {
    expect(new Set(Array.from({ length: 100 }, newTraceparent)).size).toBe(100);
  });
});
