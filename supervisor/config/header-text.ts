/** What may stand in an HTTP header (RFC 9110, section 5), before anything is sent. */

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

export function isHeaderName(text: string): boolean {
  return NAME.test(text);
}

/**
 * Why a text cannot be the value of a header, to be read after its name: `holds a line break`. Null when
 * it can. Never quotes the text, which may be a credential (invariant 9).
 */
export function headerProblem(text: string): string | null {
  if (text === '') return 'is empty';
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0;
    if (char === '\n' || char === '\r') return 'holds a line break';
    if ((code < 0x20 && char !== '\t') || code === 0x7f) return 'holds a control character';
    if (code > 0xff) return 'holds a character outside Latin-1';
  }
  return null;
}
