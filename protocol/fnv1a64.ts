/**
 * FNV-1a, 64 bit, over the UTF-8 bytes of strings.
 *
 * Source of the constants and the algorithm: the FNV specification
 * (offset basis cbf29ce484222325, prime 100000001b3). The state is kept as two 32-bit halves and
 * every step stays in 32-bit integers: this runs once for every resource update a shard hears, its
 * own or not, and doubles cost four times as much, BigInt far more.
 */

const OFFSET_HI = 0xcbf29ce4;
const OFFSET_LO = 0x84222325;
/** Low part of the prime; its only other set bit is 2^40, handled as a shift. */
const PRIME_LO = 0x1b3;
const TWO_32 = 0x1_0000_0000;

/** An unsigned 64-bit value as two unsigned 32-bit halves. */
export interface Hash64 {
  readonly hi: number;
  readonly lo: number;
}

/** Incremental FNV-1a/64. Reuse one instance through {@link Fnv1a64.reset} on hot paths. */
export class Fnv1a64 {
  private hiWord = OFFSET_HI | 0;
  private loWord = OFFSET_LO | 0;

  reset(): this {
    this.hiWord = OFFSET_HI | 0;
    this.loWord = OFFSET_LO | 0;
    return this;
  }

  /** Feeds one byte (0..255). */
  byte(value: number): this {
    const lo = this.loWord ^ value;
    this.hiWord = (Math.imul(this.hiWord, PRIME_LO) + carry(lo) + (lo << 8)) | 0;
    this.loWord = Math.imul(lo, PRIME_LO);
    return this;
  }

  /** Feeds the UTF-8 encoding of `text`; an unpaired surrogate becomes U+FFFD, as TextEncoder does. */
  text(text: string): this {
    const ascii = this.asciiPrefix(text);
    for (let index = ascii; index < text.length; index++) {
      let code = text.charCodeAt(index);
      if (code < 0x80) {
        this.byte(code);
        continue;
      }
      if (code < 0x800) {
        this.byte(0xc0 | (code >> 6)).byte(0x80 | (code & 0x3f));
        continue;
      }
      if (code >= 0xd800 && code <= 0xdfff) {
        const next = code < 0xdc00 ? text.charCodeAt(index + 1) : Number.NaN;
        if (next >= 0xdc00 && next <= 0xdfff) {
          index++;
          const point = 0x10000 + ((code - 0xd800) << 10) + (next - 0xdc00);
          this.byte(0xf0 | (point >> 18))
            .byte(0x80 | ((point >> 12) & 0x3f))
            .byte(0x80 | ((point >> 6) & 0x3f))
            .byte(0x80 | (point & 0x3f));
          continue;
        }
        code = 0xfffd;
      }
      this.byte(0xe0 | (code >> 12))
        .byte(0x80 | ((code >> 6) & 0x3f))
        .byte(0x80 | (code & 0x3f));
    }
    return this;
  }

  /**
   * Feeds the leading characters below U+0080 and returns how many they were. Nearly every key is
   * made of these alone; in local variables each costs a third of what {@link Fnv1a64.byte} does.
   */
  private asciiPrefix(text: string): number {
    let hi = this.hiWord;
    let lo = this.loWord;
    let index = 0;
    for (; index < text.length; index++) {
      const code = text.charCodeAt(index);
      if (code >= 0x80) break;
      lo ^= code;
      hi = (Math.imul(hi, PRIME_LO) + carry(lo) + (lo << 8)) | 0;
      lo = Math.imul(lo, PRIME_LO);
    }
    this.hiWord = hi;
    this.loWord = lo;
    return index;
  }

  /** The hash of everything fed so far. */
  digest(): Hash64 {
    return { hi: this.hiWord >>> 0, lo: this.loWord >>> 0 };
  }

  /**
   * The hash of everything fed so far, modulo `divisor`.
   *
   * @param divisor integer in 1..94906265 (so that the intermediate product stays below 2^53)
   */
  modulo(divisor: number): number {
    const high = ((this.hiWord >>> 0) % divisor) * (TWO_32 % divisor);
    return ((high % divisor) + ((this.loWord >>> 0) % divisor)) % divisor;
  }
}

/** Bits 32 and up of `lo` × PRIME_LO, from two products that both stay below 2^31. */
function carry(lo: number): number {
  return ((lo >>> 16) * PRIME_LO + (((lo & 0xffff) * PRIME_LO) >>> 16)) >>> 16;
}

/** FNV-1a/64 of the UTF-8 bytes of `text`. */
export function fnv1a64(text: string): Hash64 {
  return new Fnv1a64().text(text).digest();
}

/** Sixteen lower-case hexadecimal digits. */
export function hash64Hex(hash: Hash64): string {
  return hash.hi.toString(16).padStart(8, '0') + hash.lo.toString(16).padStart(8, '0');
}
