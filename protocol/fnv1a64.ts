/**
 * FNV-1a, 64 bit, over the UTF-8 bytes of strings.
 *
 * Source of the constants and the algorithm: the FNV specification
 * (offset basis cbf29ce484222325, prime 100000001b3). The state is kept as two
 * unsigned 32-bit halves because BigInt arithmetic is some fifty times slower and
 * this runs once for every resource update a shard hears, its own or not.
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
  private hiWord = OFFSET_HI;
  private loWord = OFFSET_LO;

  reset(): this {
    this.hiWord = OFFSET_HI;
    this.loWord = OFFSET_LO;
    return this;
  }

  /** Feeds one byte (0..255). */
  byte(value: number): this {
    const lo = (this.loWord ^ value) >>> 0;
    const product = lo * PRIME_LO;
    const productLo = product >>> 0;
    this.hiWord = (this.hiWord * PRIME_LO + (product - productLo) / TWO_32 + ((lo << 8) >>> 0)) >>> 0;
    this.loWord = productLo;
    return this;
  }

  /** Feeds the UTF-8 encoding of `text`; an unpaired surrogate becomes U+FFFD, as TextEncoder does. */
  text(text: string): this {
    for (let index = 0; index < text.length; index++) {
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

  /** The hash of everything fed so far. */
  digest(): Hash64 {
    return { hi: this.hiWord, lo: this.loWord };
  }

  /**
   * The hash of everything fed so far, modulo `divisor`.
   *
   * @param divisor integer in 1..94906265 (so that the intermediate product stays below 2^53)
   */
  modulo(divisor: number): number {
    const high = (this.hiWord % divisor) * (TWO_32 % divisor);
    return ((high % divisor) + (this.loWord % divisor)) % divisor;
  }
}

/** FNV-1a/64 of the UTF-8 bytes of `text`. */
export function fnv1a64(text: string): Hash64 {
  return new Fnv1a64().text(text).digest();
}

/** Sixteen lower-case hexadecimal digits. */
export function hash64Hex(hash: Hash64): string {
  return hash.hi.toString(16).padStart(8, '0') + hash.lo.toString(16).padStart(8, '0');
}
