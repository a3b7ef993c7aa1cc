import type { ContentBlock } from '@modelcontextprotocol/sdk/types.js';

/** The content of a tool result as text: what is not text is described, not dropped. */
export function contentText(content: readonly ContentBlock[]): string {
  return content.map(blockText).join('\n');
}

function blockText(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'image':
    case 'audio':
      return `[${block.type} ${block.mimeType}, ${decodedBytes(block.data)} bytes]`;
    case 'resource': {
      const { resource } = block;
      if ('text' in resource) return resource.text;
      return `[resource ${resource.uri} ${resource.mimeType ?? 'of unknown type'}, ${decodedBytes(resource.blob)} bytes]`;
    }
    case 'resource_link':
      return `[resource ${block.uri}${block.name === '' ? '' : ` (${block.name})`}]`;
  }
}

/** Bytes behind a base64 text. */
function decodedBytes(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return Math.max(0, Math.floor((base64.length * 3) / 4) - padding);
}

/**
 * Cuts a text at a number of UTF-8 bytes, between characters, and says so.
 *
 * @param maxBytes of the text kept, the note excluded
 */
export function cutText(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes;
  // Back to the start of a character: continuation bytes are 10xxxxxx.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  const kept = bytes.subarray(0, end).toString('utf8');
  return `${kept}\n[cut: the result has ${bytes.length} bytes, of which the first ${end} are shown]`;
}
