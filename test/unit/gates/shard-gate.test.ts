import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fnv1a64 } from '../../../protocol/fnv1a64.ts';
import { compileShardKey, inShard } from '../../../supervisor/gates/shard-gate.ts';

describe('shard gate', () => {
  it('gives every key to exactly one shard, for every count from 1 to 64', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (key) => {
        for (let count = 1; count <= 64; count++) {
          let owners = 0;
          for (let index = 0; index < count; index++) if (inShard(key, index, count)) owners++;
          expect(owners).toBe(1);
        }
      }),
      { numRuns: 50 },
    );
  });

  it('agrees with the hash modulo the count, computed exactly', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 90_000_000 }), (key, count) => {
        const { hi, lo } = fnv1a64(key);
        const exact = Number(((BigInt(hi) << 32n) | BigInt(lo)) % BigInt(count));
        expect(inShard(key, exact, count)).toBe(true);
      }),
    );
  });

  it.each([
    ['a', 0xaf63dc4c8601ec8cn],
    ['café', 0x48e8823acfa40d89n],
    ['Я', 0x0af5f907b744f7a0n],
  ])('puts %s where the check value says', (key, hash) => {
    for (const count of [2, 3, 7, 8, 64])
      expect(inShard(key, Number(hash % BigInt(count)), count)).toBe(true);
  });

  it('takes the shard key from a path segment, a group or metadata, and falls back to the uri', () => {
    const segment = compileShardKey({ kind: 'segment', name: 'tenant', template: 'q:///{tenant}/{item}' });
    expect(segment('q:///acme/7', null)).toBe('acme');
    expect(segment('other:///x', null)).toBe('other:///x');
    const regex = compileShardKey({ kind: 'regex', pattern: 'order-(?<id>\\d+)', group: 'id' });
    expect(regex('q:///order-42.json', null)).toBe('42');
    const metadata = compileShardKey({ kind: 'metadata', pointer: '/owner/a~1b' });
    const info = {
      uri: 'u',
      name: 'u',
      mimeType: null,
      size: null,
      lastModified: null,
      meta: { owner: { 'a/b': 7 } },
    };
    expect(metadata('u', info)).toBe('7');
    expect(metadata('u', null)).toBe('u');
  });
});
