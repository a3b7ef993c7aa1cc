import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Fnv1a64, fnv1a64, hash64Hex } from '../../../protocol/fnv1a64.ts';

const MASK = (1n << 64n) - 1n;

/** The definition, in arbitrary precision. */
function reference(text: string): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & MASK;
  return hash;
}

describe('FNV-1a/64', () => {
  test.each([
    ['', 'cbf29ce484222325'],
    ['a', 'af63dc4c8601ec8c'],
    ['café', '48e8823acfa40d89'],
    ['Я', '0af5f907b744f7a0'],
  ])('the check value of %j is %s', (text, hex) => {
    expect(hash64Hex(fnv1a64(text))).toBe(hex);
  });

  test('equals the definition for every string, lone surrogates included', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }),
        fc.string({ unit: fc.integer({ min: 0xd7f0, max: 0xe010 }).map((c) => String.fromCharCode(c)) }),
        (left, right) => {
          const text = left + right;
          expect(BigInt(`0x${hash64Hex(fnv1a64(text))}`)).toBe(reference(text));
        },
      ),
    );
  });

  test('modulo equals the remainder of the whole 64 bits', () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 1, max: 94_906_265 }), (text, divisor) => {
        expect(new Fnv1a64().text(text).modulo(divisor)).toBe(Number(reference(text) % BigInt(divisor)));
      }),
    );
  });

  test('reset makes one instance as good as a new one', () => {
    const hasher = new Fnv1a64().text('something else');
    expect(hasher.reset().text('café').digest()).toEqual(fnv1a64('café'));
  });
});
