import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeFrame, FrameDecoder } from '../../../protocol/ndjson.ts';

interface Seen {
  frames: Record<string, unknown>[];
  garbage: string[];
  overflows: number[];
}

function decoder(maxBytes?: number): { readonly decoder: FrameDecoder; readonly seen: Seen } {
  const seen: Seen = { frames: [], garbage: [], overflows: [] };
  const handlers = {
    frame: (value: Record<string, unknown>) => void seen.frames.push(value),
    garbage: (sample: string) => void seen.garbage.push(sample),
    overflow: (bytes: number) => void seen.overflows.push(bytes),
  };
  return { decoder: new FrameDecoder(handlers, maxBytes), seen };
}

function decodeInPieces(bytes: Buffer, cuts: readonly number[]): Seen {
  const { decoder: target, seen } = decoder();
  let start = 0;
  for (const cut of [...cuts, bytes.length]) {
    const end = Math.min(bytes.length, start + cut);
    target.write(bytes.subarray(start, end));
    start = end;
  }
  target.write(bytes.subarray(start));
  target.end();
  return seen;
}

describe('NDJSON frames', () => {
  test('H18: line separators, an em dash and an emoji survive delivery one byte at a time', () => {
    const frame = { method: 'x', params: { text: 'a\u2028b\u2029c — 🦀\r\n\t"\\' } };
    const bytes = Buffer.from(encodeFrame(frame));
    const seen = decodeInPieces(
      bytes,
      Array.from({ length: bytes.length }, () => 1),
    );
    expect(seen).toEqual({ frames: [{ jsonrpc: '2.0', ...frame }], garbage: [], overflows: [] });
  });

  test('any frames, chopped anywhere, arrive as they were sent and in order', () => {
    const frames = fc.array(fc.dictionary(fc.string(), fc.jsonValue()), { maxLength: 8 });
    const cuts = fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 60 });
    fc.assert(
      fc.property(frames, cuts, (values, pieces) => {
        // As JSON: -0 and a __proto__ key do not survive any JSON round trip.
        const sent = values.map((value) => JSON.parse(JSON.stringify({ jsonrpc: '2.0', ...value })));
        const bytes = Buffer.from(values.map((value) => encodeFrame(value)).join(''));
        const seen = decodeInPieces(bytes, pieces);
        expect(seen.garbage).toEqual([]);
        expect(seen.frames).toEqual(sent);
      }),
    );
  });

  test('H20: endless output without a newline ends at the cap, once, and nothing after it is taken', () => {
    const { decoder: target, seen } = decoder(1000);
    for (let index = 0; index < 50; index++) target.write(Buffer.alloc(100, 'x'));
    target.write(Buffer.from('\n{"a":1}\n'));
    target.end();
    expect(seen.overflows).toEqual([1100]);
    expect(seen.frames).toEqual([]);
  });

  test('H20: a frame just under the cap and a small one in one chunk are both accepted', () => {
    const { decoder: target, seen } = decoder(1000);
    const large = JSON.stringify({ text: 'x'.repeat(1000 - '{"text":""}'.length) });
    expect(large.length).toBe(1000);
    target.write(Buffer.from(`${large}\n{"small":true}\n`));
    expect(seen.frames.map((frame) => Object.keys(frame))).toEqual([['text'], ['small']]);
    expect(seen.overflows).toEqual([]);
  });

  test('one byte past the cap is refused', () => {
    const { decoder: target, seen } = decoder(1000);
    target.write(Buffer.from(`{"text":"${'x'.repeat(1001 - 11)}"}\n`));
    expect(seen.overflows).toEqual([1001]);
    expect(seen.frames).toEqual([]);
  });

  test('H20: banner lines, scalars and broken JSON are reported and skipped', () => {
    const { decoder: target, seen } = decoder();
    target.write(Buffer.from('Welcome to library 3.0!\n42\n[1]\nnull\n{"half":\n\n   \n{"ok":1}\r\n'));
    expect(seen.frames).toEqual([{ ok: 1 }]);
    expect(seen.garbage).toHaveLength(5);
  });

  test('invalid UTF-8 in a frame neither throws nor stops the next one', () => {
    const { decoder: target, seen } = decoder();
    target.write(
      Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff, 0xc3, 0x28]), Buffer.from('"}\n')]),
    );
    target.write(Buffer.from([0xfe, 0xff, 0x0a]));
    target.write(Buffer.from('{"b":2}\n'));
    expect(seen.frames.at(-1)).toEqual({ b: 2 });
    expect(seen.frames).toHaveLength(2);
    expect(seen.garbage).toHaveLength(1);
  });

  test('a handler that throws is not taken for a broken line, and the next frame still arrives', async () => {
    const thrown = new Promise((resolve) => {
      // The runner's own listeners would fail the test for what is meant to surface here.
      const others = process.listeners('uncaughtException');
      process.removeAllListeners('uncaughtException');
      process.once('uncaughtException', (error) => {
        for (const other of others) process.on('uncaughtException', other);
        resolve(error);
      });
    });
    const fault = new Error('a fault of the handler');
    const frames: unknown[] = [];
    const garbage: string[] = [];
    const target = new FrameDecoder({
      frame: (value) => {
        frames.push(value);
        if (frames.length === 1) throw fault;
      },
      garbage: (sample) => garbage.push(sample),
      overflow: () => undefined,
    });
    target.write(Buffer.from('{"a":1}\n{"b":2}\n'));
    target.write(Buffer.from('{"c":3}\n'));
    expect(await thrown).toBe(fault);
    expect(frames).toEqual([{ a: 1 }, { b: 2 }, { c: 3 }]);
    expect(garbage).toEqual([]);
  });

  test('a last line without a newline is torn, not a frame', () => {
    const { decoder: target, seen } = decoder();
    target.write(Buffer.from('{"a":1}\n{"b":2}'));
    target.end();
    expect(seen.frames).toEqual([{ a: 1 }]);
    expect(seen.garbage).toEqual(['{"b":2}']);
  });

  test('garbage samples are short, however long the line', () => {
    const { decoder: target, seen } = decoder();
    target.write(Buffer.from(`${'z'.repeat(100_000)}\n`));
    expect(seen.garbage[0]?.length).toBeLessThan(500);
  });

  test('a frame past the cap is not sent, counted in bytes and not in characters', () => {
    expect(() => encodeFrame({ text: 'я'.repeat(600) }, 1000)).toThrowError(/cannot send a frame/);
    expect(encodeFrame({ text: 'x'.repeat(600) }, 1000)).toMatch(/\n$/);
  });
});
