import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { contentText, cutText } from '../../../supervisor/mcp/tool-result.ts';

describe('the content of a tool result', () => {
  it('is text as it is, and a description of what is not text', () => {
    const data = Buffer.alloc(1_000).toString('base64');
    expect(
      contentText([
        { type: 'text', text: 'one' },
        { type: 'image', mimeType: 'image/png', data },
        { type: 'audio', mimeType: 'audio/wav', data: Buffer.alloc(1_001).toString('base64') },
        { type: 'resource', resource: { uri: 'a://1', text: 'two' } },
        { type: 'resource', resource: { uri: 'a://2', mimeType: 'application/pdf', blob: data } },
        { type: 'resource_link', uri: 'a://3', name: 'three' },
      ]),
    ).toBe(
      [
        'one',
        '[image image/png, 1000 bytes]',
        '[audio audio/wav, 1001 bytes]',
        'two',
        '[resource a://2 application/pdf, 1000 bytes]',
        '[resource a://3 (three)]',
      ].join('\n'),
    );
  });

  it('is cut between characters, at the cap and not before', () => {
    expect(cutText('abc', 3)).toBe('abc');
    expect(cutText('abcd', 3)).toBe('abc\n[cut: the result has 4 bytes, of which the first 3 are shown]');
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 0, max: 40 }), (text, max) => {
        const cut = cutText(text, max);
        if (Buffer.byteLength(text) <= max) {
          expect(cut).toBe(text);
          return;
        }
        const kept = cut.slice(0, cut.lastIndexOf('\n[cut: '));
        expect(text.startsWith(kept)).toBe(true);
        expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(max);
        expect(Buffer.byteLength(kept)).toBeGreaterThan(max - 4);
      }),
    );
  });
});
