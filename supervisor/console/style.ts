/** Colours of a terminal, or none. */
export type Style = 'dim' | 'bold' | 'red' | 'green' | 'yellow' | 'blue' | 'magenta' | 'cyan';
export type Paint = (style: Style, text: string) => string;

const CODES: Readonly<Record<Style, number>> = {
  bold: 1,
  red: 31,
  green: 32,
  yellow: 33,
  blue: 34,
  magenta: 35,
  cyan: 36,
  dim: 90,
};

export const plain: Paint = (_style, text) => text;
export const coloured: Paint = (style, text) => `\u001b[${CODES[style]}m${text}\u001b[0m`;

/** Colours for a stream that is a terminal, unless NO_COLOR says otherwise (no-color.org). */
export function paintFor(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): Paint {
  return stream.isTTY === true && (env.NO_COLOR ?? '') === '' ? coloured : plain;
}

/** What of a text takes up columns: the text without its colours. */
export function widthOf(text: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the escapes of the colours above
  return [...text.replace(/\u001b\[\d+m/g, '')].length;
}
