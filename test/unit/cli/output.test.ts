import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { flushOutput } from '../../../supervisor/cli/output.ts';

/** A stream whose reader takes a chunk only when told. */
function slowStream(): { stream: Writable; take: () => void; taken: string[] } {
  const waiting: (() => void)[] = [];
  const taken: string[] = [];
  const stream = new Writable({
    decodeStrings: false,
    write(chunk: string, _encoding, done) {
      waiting.push(() => {
        taken.push(chunk);
        done();
      });
    },
  });
  return { stream, take: () => waiting.shift()?.(), taken };
}

describe('flushing the output', () => {
  it('returns at once when nothing waits', async () => {
    const { stream } = slowStream();
    await expect(flushOutput(stream, 60_000)).resolves.toBeUndefined();
  });

  it('waits until the reader has taken everything', async () => {
    const { stream, take, taken } = slowStream();
    for (const text of ['a', 'b', 'c']) stream.write(text);
    let done = false;
    const flushed = flushOutput(stream, 60_000).then(() => {
      done = true;
    });
    for (const text of ['a', 'b', 'c']) {
      expect(done).toBe(false);
      take();
      await new Promise(setImmediate);
      expect(taken.at(-1)).toBe(text);
    }
    take();
    await flushed;
    expect(taken.join('')).toBe('abc');
  });

  it('gives up on a reader that takes nothing', async () => {
    const { stream, taken } = slowStream();
    stream.write('never taken');
    await flushOutput(stream, 1);
    expect(taken).toEqual([]);
  });

  it('gives up on a stream that breaks', async () => {
    const { stream } = slowStream();
    stream.on('error', () => undefined);
    stream.write('lost');
    const flushed = flushOutput(stream, 60_000);
    stream.destroy(new Error('EPIPE'));
    await flushed;
    expect(stream.destroyed).toBe(true);
  });
});
