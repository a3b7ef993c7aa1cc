import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDuration, parseBytes, parseDuration } from '../../../supervisor/config/quantities.ts';

describe('durations', () => {
  it.each([
    ['250ms', 250],
    ['30s', 30_000],
    ['5m', 300_000],
    ['4h', 14_400_000],
    ['30', 30_000],
    [30, 30_000],
    ['0.5', 500],
    [' 1.5 s ', 1_500],
    ['0', 0],
    ['720h', 2_592_000_000],
  ])('reads %j as %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each(['', 's', '-1s', '5 minutes', '1h30m', '1e3', 'NaN', 'Infinity', '0x10'])('refuses %j', (text) => {
    expect(parseDuration(text)).toBeNull();
  });

  it('reads back what it writes', () => {
    fc.assert(
      fc.property(fc.nat(10_000_000_000), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
  });
});

describe('sizes', () => {
  it.each([
    ['512', 512],
    [512, 512],
    ['1K', 1024],
    ['64Mi', 67_108_864],
    ['1GiB', 1_073_741_824],
    ['1.5m', 1_572_864],
    ['100kB', 100_000],
    ['2 MB', 2_000_000],
  ])('reads %j as %d bytes', (text, size) => {
    expect(parseBytes(text)).toBe(size);
  });

  it.each(['', 'M', '-1', '1X', '1MiBB', '99999999999T'])('takes %j for no size', (text) => {
    expect(parseBytes(text)).toBeNull();
  });
});
