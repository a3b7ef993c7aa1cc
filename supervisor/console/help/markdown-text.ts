import { type Paint, widthOf } from '../style.ts';

/** A page of the documentation as text for a terminal: headings, wrapped paragraphs, tables, code. */

/** Columns under which a wrapped column is no longer read with ease. */
const LEAST_COLUMN = 24;

/** @param width columns of the terminal */
export function markdownText(markdown: string, width: number, paint: Paint): string {
  const blocks = blocksOf(markdown.replace(/<!--[\s\S]*?-->\s*/g, ''));
  return `${blocks.map((block) => blockText(block, width, paint)).join('\n\n')}\n`;
}

type Block =
  | { readonly kind: 'heading'; readonly text: string }
  | { readonly kind: 'code'; readonly lines: readonly string[] }
  | { readonly kind: 'table'; readonly rows: readonly (readonly string[])[] }
  | { readonly kind: 'list'; readonly items: readonly string[] }
  | { readonly kind: 'text'; readonly text: string };

function blocksOf(markdown: string): Block[] {
  const lines = markdown.split('\n');
  const blocks: Block[] = [];
  let at = 0;
  const take = (matches: (line: string) => boolean): string[] => {
    const from = at;
    while (at < lines.length && matches(lines[at] ?? '')) at += 1;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at] ?? '';
    if (line.trim() === '') {
      at += 1;
    } else if (line.startsWith('```')) {
      at += 1;
      blocks.push({ kind: 'code', lines: take((next) => !next.startsWith('```')) });
      at += 1;
    } else if (line.startsWith('#')) {
      at += 1;
      blocks.push({ kind: 'heading', text: line.replace(/^#+\s*/, '') });
    } else if (line.startsWith('|')) {
      const rows = take((next) => next.startsWith('|')).map(cellsOf);
      blocks.push({ kind: 'table', rows: rows.filter((row) => !row.every((cell) => /^:?-+:?$/.test(cell))) });
    } else if (/^ {4}\S/.test(line)) {
      const code = take((next) => next.startsWith('    '));
      blocks.push({ kind: 'code', lines: code.map((one) => one.slice(4)) });
    } else if (isItem(line)) {
      const items: string[] = [];
      for (const next of take((one) => isItem(one) || /^\s+\S/.test(one))) {
        if (isItem(next)) items.push(next.trimEnd());
        else items.push(`${items.pop() ?? ''} ${next.trim()}`);
      }
      blocks.push({ kind: 'list', items });
    } else {
      const text = take((next) => next.trim() !== '' && !/^(#|\||```)/.test(next) && !isItem(next));
      blocks.push({ kind: 'text', text: text.join(' ') });
    }
  }
  return blocks;
}

function isItem(line: string): boolean {
  return /^\s*([-*]|\d+\.)\s/.test(line);
}

/** Cells of a row; `\|` is a bar in a cell. */
function cellsOf(line: string): string[] {
  return line
    .trim()
    .replace(/^\||\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));
}

function blockText(block: Block, width: number, paint: Paint): string {
  switch (block.kind) {
    case 'heading':
      return paint(
        'bold',
        inline(block.text, (_style, text) => text),
      );
    case 'code':
      return block.lines.map((line) => `    ${line}`).join('\n');
    case 'table':
      return tableText(block.rows, width, paint);
    case 'list':
      return block.items.map((item) => itemText(item, width, paint)).join('\n');
    case 'text':
      return wrapped(inline(block.text, paint), width);
  }
}

function itemText(item: string, width: number, paint: Paint): string {
  const [, indent = '', mark = '-', text = ''] = /^(\s*)([-*]|\d+\.)\s+(.*)$/.exec(item) ?? [];
  const lead = `${indent}${mark} `;
  const lines = wrapped(inline(text, paint), width - lead.length).split('\n');
  return lines.map((line, at) => (at === 0 ? lead : ' '.repeat(lead.length)) + line).join('\n');
}

/** Side by side, the widest column wrapped where that is needed and leaves room; otherwise each row is a paragraph. */
function tableText(rows: readonly (readonly string[])[], width: number, paint: Paint): string {
  const cells = rows.map((row, at) =>
    row.map((cell) =>
      at === 0
        ? paint(
            'dim',
            inline(cell, (_style, text) => text),
          )
        : inline(cell, paint),
    ),
  );
  const columns = Math.max(...cells.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, at) =>
    Math.max(0, ...cells.map((row) => widthOf(row[at] ?? ''))),
  );
  const widest = widths.indexOf(Math.max(...widths));
  const total = widths.reduce((sum, one) => sum + one + 2, -2);
  const room = (widths[widest] ?? 0) - Math.max(0, total - width);
  if (room < LEAST_COLUMN && total > width) {
    return cells
      .slice(1)
      .map((row) => rowText(row, width))
      .join('\n');
  }
  widths[widest] = room;
  return cells.map((row) => sideBySide(row, widths).join('\n')).join('\n');
}

function sideBySide(row: readonly string[], widths: readonly number[]): string[] {
  const parts = widths.map((one, at) => wrapped(row[at] ?? '', Math.max(1, one)).split('\n'));
  const height = Math.max(...parts.map((part) => part.length));
  return Array.from({ length: height }, (_, line) =>
    parts
      .map((part, at) => {
        const text = part[line] ?? '';
        return text + ' '.repeat(Math.max(0, (widths[at] ?? 0) - widthOf(text)));
      })
      .join('  ')
      .trimEnd(),
  );
}

function rowText([first = '', ...rest]: readonly string[], width: number): string {
  const text = rest.filter((cell) => cell !== '').join(' · ');
  return [
    first,
    ...wrapped(text, width - 4)
      .split('\n')
      .map((line) => `    ${line}`),
  ]
    .join('\n')
    .trimEnd();
}

/** Code, links and emphasis of one line. */
function inline(text: string, paint: Paint): string {
  return text
    .replace(/\[([^\]]+)\]\([^)]*\)/g, '$1')
    .replace(/`([^`]+)`/g, (_whole, code: string) => paint('cyan', code))
    .replace(/\*\*([^*]+)\*\*/g, (_whole, strong: string) => paint('bold', strong))
    .replace(/(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])/g, '$1');
}

function wrapped(text: string, width: number): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && widthOf(longer) > width) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return [...lines, line].join('\n');
}
