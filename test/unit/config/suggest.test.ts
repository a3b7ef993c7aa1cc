import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { didYouMean, nearest } from '../../../supervisor/config/suggest.ts';

const NAMES = ['max_steps', 'max_tokens', 'deadline', 'claim', 'shard'];

describe('suggestions', () => {
  it.each([
    ['max_step', 'max_steps'],
    ['max-steps', 'max_steps'],
    ['dealdine', 'deadline'],
    ['Shard', 'shard'],
    ['dead', 'deadline'],
  ])('takes %s for a slip of %s', (typed, meant) => {
    expect(nearest(typed, NAMES)).toBe(meant);
  });

  it('suggests nothing far away', () => {
    expect(nearest('workflows', NAMES)).toBeNull();
    expect(didYouMean('workflows', NAMES)).toBe('');
  });

  it('finds a name under any single slip of the keyboard', () => {
    const slip = fc
      .constantFrom(...NAMES)
      .chain((name) =>
        fc.tuple(fc.constant(name), fc.nat(name.length - 1), fc.constantFrom('drop', 'double', 'swap')),
      );
    fc.assert(
      fc.property(slip, ([name, at, kind]) => {
        const [head, char, tail] = [name.slice(0, at), name[at] ?? '', name.slice(at + 1)];
        const typed =
          kind === 'drop'
            ? head + tail
            : kind === 'double'
              ? head + char + char + tail
              : head + tail.slice(0, 1) + char + tail.slice(1);
        expect(nearest(typed, NAMES)).toBe(name);
      }),
    );
  });
});
