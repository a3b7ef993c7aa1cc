/** Largest result that leaves a child, bytes of UTF-8. Larger bodies belong in a resource. */
export const MAX_RESULT_BYTES = 64 * 1024;

/** Cuts a final answer to what a parent may be handed, with a note where it was cut. */
export function distill(text: string, maxBytes: number = MAX_RESULT_BYTES): string {
  const trimmed = text.trim();
  const bytes = Buffer.byteLength(trimmed);
  if (bytes <= maxBytes) return trimmed;
  const note = `\n[cut: the answer had ${bytes} bytes]`;
  return cutBytes(trimmed, Math.max(0, maxBytes - Buffer.byteLength(note))) + note;
}

/** Keeps the beginning and the end of a long text, by characters, and says what is missing. */
export function cutMiddle(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const note = (cut: number): string => `\n[… ${cut} characters cut …]\n`;
  const room = Math.max(0, maxLength - note(text.length).length);
  const head = Math.ceil((room * 3) / 4);
  const tail = room - head;
  const end = tail === 0 ? '' : text.slice(-tail);
  return wellFormed(text.slice(0, head)) + note(text.length - room) + wellFormed(end);
}

function cutBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  let end = maxBytes;
  // Not inside a character: continuation bytes are 10xxxxxx.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}

/** Replaces halves of surrogate pairs, which UTF-8 cannot carry. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}
