import { Fnv1a64 } from './fnv1a64.ts';

/** Crockford base 32, the alphabet of the ULID specification. */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/**
 * The claim key of an item on a route: the same on every replica, at every retry.
 *
 * 16 bytes = fnv1a64(uri ‖ 00 ‖ route) ‖ fnv1a64(route ‖ 00 ‖ uri), big-endian,
 * written as a 26-character ULID string (contract, section 9). It is also the run id
 * of the claimed run, so every side effect downstream carries it.
 */
export function claimKey(uri: string, route: string): string {
  const first = new Fnv1a64().text(uri).byte(0).text(route).digest();
  const second = new Fnv1a64().text(route).byte(0).text(uri).digest();
  return encodeUlid([first.hi, first.lo, second.hi, second.lo]);
}

/** Writes 128 bits, given as four big-endian 32-bit words, as 26 base-32 characters. */
function encodeUlid(words: readonly [number, number, number, number]): string {
  let text = '';
  // 26 characters are 130 bits: the value is right-aligned, so the first carries 3 bits.
  for (let index = 0; index < 26; index++) {
    const lowBit = 125 - index * 5;
    text += ALPHABET.charAt(bitsAt(words, lowBit));
  }
  return text;
}

/** The five bits whose lowest is `lowBit` (0 = least significant of the 128). */
function bitsAt(words: readonly [number, number, number, number], lowBit: number): number {
  let value = 0;
  for (let bit = 4; bit >= 0; bit--) {
    const position = lowBit + bit;
    const word = position > 127 ? 0 : (words[3 - (position >> 5)] ?? 0);
    value = (value << 1) | ((word >>> (position & 31)) & 1);
  }
  return value;
}
