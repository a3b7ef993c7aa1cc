import { durationText } from '../telemetry/duration-text.ts';

/** Items of a coordination server as text for people. */

type Item = Readonly<Record<string, unknown>>;

const COLUMNS: readonly {
  readonly title: string;
  readonly width: number;
  readonly cell: (item: Item) => string;
}[] = [
  { title: 'STATE', width: 11, cell: (item) => text(item.state) },
  { title: 'PRIORITY', width: 8, cell: (item) => text(item.priority) },
  { title: 'ATTEMPT', width: 7, cell: (item) => `${text(item.attempt)}/${text(item.max_attempts)}` },
  { title: 'AGE', width: 8, cell: (item) => age(item) },
  { title: 'TENANT', width: 12, cell: (item) => text(item.tenant) },
  { title: 'KIND', width: 12, cell: (item) => text(item.kind) },
  { title: 'HOLDER', width: 16, cell: (item) => text(item.held_by) },
  { title: 'ID', width: 0, cell: (item) => text(item.work_id) },
];

export function workHeader(): string {
  return COLUMNS.map(({ title, width }) => title.padEnd(width))
    .join('  ')
    .trimEnd();
}

export function workRow(item: Item): string {
  const cells = COLUMNS.map(({ width, cell }) => printable(cell(item)).padEnd(width));
  return cells.join('  ').trimEnd();
}

/** Everything about one item, a line for each fact. */
export function workDetails(item: Item): string {
  const facts: readonly [string, unknown][] = [
    ['id', item.work_id],
    ['item', item.item],
    ['state', item.state],
    ['kind', item.kind],
    ['tenant', item.tenant],
    ['priority', item.priority],
    ['attempt', `${text(item.attempt)} of ${text(item.max_attempts)}`],
    ['age', age(item)],
    ['holder', item.held_by],
    ['last error', item.last_error],
    ['result', item.result === undefined ? undefined : JSON.stringify(item.result)],
  ];
  return facts
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name.padEnd(10)}  ${printable(text(value))}`)
    .join('\n');
}

export function workStats(stats: Item): string {
  return [
    `pending      ${text(stats.pending)}`,
    `claimed      ${text(stats.claimed)}`,
    `dead letter  ${text(stats.deadletter)}`,
    ...(stats.done === undefined ? [] : [`done         ${text(stats.done)}`]),
    `oldest       ${durationText(Number(stats.oldest_age_ms))}`,
  ].join('\n');
}

function age(item: Item): string {
  return typeof item.age_ms === 'number' ? durationText(item.age_ms) : '';
}

function text(value: unknown): string {
  return value === undefined ? '' : String(value);
}

/** What is shown may be anybody's text; a terminal must not be steered by it. */
function printable(value: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return value.replace(/[\u0000-\u001f\u007f-\u009f]/g, '?');
}
