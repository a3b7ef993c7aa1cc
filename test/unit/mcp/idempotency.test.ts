import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson, IdempotencyKeys } from '../../../supervisor/mcp/idempotency.ts';

describe('idempotency keys', () => {
  it('do not depend on the order of keys, at any depth', () => {
    expect(canonicalJson({ b: [{ d: 1, c: 2 }], a: null })).toBe('{"a":null,"b":[{"c":2,"d":1}]}');
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const reversed = Object.fromEntries(Object.entries(value).reverse());
        expect(canonicalJson(reversed)).toBe(canonicalJson(value));
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('are never shared by calls in flight, and are the same in a replay', () => {
    const call = fc.record({ tool: fc.constantFrom('a', 'b'), n: fc.integer({ min: 0, max: 3 }) });
    fc.assert(
      fc.property(fc.array(call), (calls) => {
        const issue = (keys: IdempotencyKeys): string[] =>
          calls.map(({ tool, n }) => keys.issue('R', 's', tool, canonicalJson({ n })).key);
        const first = issue(new IdempotencyKeys());
        expect(new Set(first).size).toBe(first.length);
        expect(issue(new IdempotencyKeys())).toEqual(first);
      }),
    );
  });

  it('tell server and tool apart from each other', () => {
    const keys = new IdempotencyKeys();
    const one = keys.issue('R', 'ab', 'c', '{}').key;
    expect(keys.issue('R', 'a', 'bc', '{}').key).not.toBe(one);
  });

  it('are given again for a call that was not answered', () => {
    const keys = new IdempotencyKeys();
    const first = keys.issue('R', 's', 't', '{}');
    const second = keys.issue('R', 's', 't', '{}');
    first.unanswered();
    expect(keys.issue('R', 's', 't', '{}').key).toBe(first.key);
    expect(keys.issue('R', 's', 't', '{}').key).toBe(second.key.replace(/1$/, '2'));
  });

  it('are forgotten with their run', () => {
    const keys = new IdempotencyKeys();
    keys.issue('R1', 's', 't', '{}');
    keys.issue('R2', 's', 't', '{}');
    keys.forget('R1');
    expect(keys.size).toBe(1);
    keys.forget('R2');
    expect(keys.size).toBe(0);
  });
});
