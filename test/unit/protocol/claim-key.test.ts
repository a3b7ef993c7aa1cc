import fc from 'fast-check';
import { decodeTime, isValid } from 'ulid';
import { describe, expect, test } from 'vitest';
import { claimKey } from '../../../protocol/claim-key.ts';
import { fnv1a64, hash64Hex } from '../../../protocol/fnv1a64.ts';

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

function decode(key: string): string {
  let value = 0n;
  for (const character of key) value = value * 32n + BigInt(ALPHABET.indexOf(character));
  return value.toString(16).padStart(32, '0');
}

describe('claim key', () => {
  // Derived by another implementation: replicas of any version and language must get these keys.
  test.each([
    ['inbox://docs/a.md', 'inbox', '33F2ZHKRP50X4VBGENQJ8A1725'],
    ['file:///tmp/café Я 🦀.txt', 'docs/**', '7JYZQ8EFZ5074C2K8RDY9PS0NC'],
    ['', '', '5FCEYMS1G1PZFTYRXX9J303DYZ'],
  ])('of %j on %j is %s', (uri, route, key) => {
    expect(claimKey(uri, route)).toBe(key);
  });

  test('is the two hashes with the texts in both orders, big-endian', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (uri, route) => {
        const first = hash64Hex(fnv1a64(`${uri}\0${route}`));
        const second = hash64Hex(fnv1a64(`${route}\0${uri}`));
        expect(decode(claimKey(uri, route))).toBe(first + second);
      }),
    );
  });

  test('is a ULID string: 26 characters, the first at most 7', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (uri, route) => {
        const key = claimKey(uri, route);
        expect(key).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
        expect(isValid(key)).toBe(true);
        expect(decodeTime(key)).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  test('keeps URI and route apart', () => {
    expect(claimKey('a', 'b')).not.toBe(claimKey('b', 'a'));
    expect(claimKey('ab', '')).not.toBe(claimKey('a', 'b'));
    expect(claimKey('x://1', 'r')).not.toBe(claimKey('x://2', 'r'));
  });
});
