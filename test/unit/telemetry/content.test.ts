import { describe, expect, it } from 'vitest';
import { contentField } from '../../../supervisor/telemetry/content.ts';

describe('content in the log', () => {
  it('is hash and length, so that nothing of it can be read', () => {
    expect(contentField('abc', false)).toEqual({ sha256: 'ba7816bf8f01cfea', bytes: 3 });
    expect(contentField('é', false)).toMatchObject({ bytes: 2 });
    expect(JSON.stringify(contentField({ password: 'hunter2' }, false))).not.toContain('hunter2');
  });

  it('is itself only when that was asked for', () => {
    expect(contentField({ a: 1 }, true)).toEqual({ a: 1 });
  });

  it('survives what has no JSON', () => {
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    expect(contentField(circular, false)).toMatchObject({ bytes: expect.any(Number) });
    expect(contentField(undefined, false)).toMatchObject({ bytes: 0 });
  });
});
