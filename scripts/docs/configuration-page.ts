import { missingFeature } from '../../supervisor/config/implemented.ts';
import { configJsonSchema } from '../../supervisor/config/json-schema.ts';
import { BYTES_PATTERN, DURATION_PATTERN } from '../../supervisor/config/quantities.ts';
import { OTHER_FLAGS, OTHER_VARIABLES, SETTINGS } from '../../supervisor/config/settings.ts';
import { INTRODUCTION, SHORTHANDS } from './configuration-prose.ts';
import { code, page, table } from './markdown.ts';

/** What is used of a JSON Schema node. */
interface Node {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Node;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly Node[];
}

/** docs/configuration.md. */
export function configurationPage(): string {
  const root: Node = configJsonSchema();
  const top = Object.entries(root.properties ?? {});
  const single = top.filter(([, node]) => mapping(node) === null && listed(node) === null);
  const grouped = top.filter(([, node]) => mapping(node) !== null || listed(node) !== null);
  return page(
    '# Configuration',
    INTRODUCTION,
    '## Top-level keys',
    keyTable(single.map(([key, node]) => ({ key, node, required: false }))),
    ...grouped.flatMap(([key, node]) => [
      `## ${key}`,
      [node.description ?? mapping(node)?.description ?? ''].filter((text) => text !== '').join(''),
      keyTable(rowsUnder(key, node)),
    ]),
    '## One-line forms',
    SHORTHANDS,
    '## Further flags',
    table(
      ['flag', 'what it does'],
      OTHER_FLAGS.map((flag) => [code('arg' in flag ? `${flag.flag} ${flag.arg}` : flag.flag), flag.help]),
    ),
    '## Further variables',
    table(
      ['variable', 'what it does'],
      OTHER_VARIABLES.map(({ name, help }) => [code(name), help]),
    ),
  );
}

/** What this build does not serve is said where people look for it. */
function availability(key: string, { default: value }: Node): string {
  if (missingFeature(key) === null) return '';
  return value === undefined || value === false
    ? ' Not in this build: refused.'
    : ' In this build only the default.';
}

interface Row {
  readonly key: string;
  readonly node: Node;
  readonly required: boolean;
}

function keyTable(rows: readonly Row[]): string {
  return table(
    ['key', 'type', 'default', 'flag', 'variable', 'description'],
    rows.map(({ key, node, required }) => {
      const settings = SETTINGS.filter((setting) => setting.key === key);
      const flags = settings.flatMap(({ flag, aliases = [] }) =>
        flag === undefined ? [] : [flag, ...aliases],
      );
      const variables = settings.flatMap(({ env = [] }) => env);
      return [
        code(key),
        typeText(node),
        required ? 'required' : defaultText(node),
        flags.map(code).join(' '),
        variables.map(code).join(' '),
        `${node.description ?? ''}${availability(key, node)}`,
      ];
    }),
  );
}

/** The keys under a mapping or in the mappings of a list, all the way down. */
function rowsUnder(key: string, node: Node): Row[] {
  const item = listed(node);
  const inner = mapping(item ?? node);
  const prefix = item === null ? key : `${key}[]`;
  const own = item === null ? [] : [{ key, node, required: false }];
  const below = Object.entries(inner?.properties ?? {}).flatMap(([name, child]): Row[] => {
    const path = `${prefix}.${name}`;
    const required = inner?.required?.includes(name) === true && child.default === undefined;
    if (listed(child) !== null && mapping(listed(child) ?? {}) !== null) return rowsUnder(path, child);
    if (mapping(child) === null) return [{ key: path, node: child, required }];
    const alone = child.anyOf !== undefined || required || child.default === undefined;
    return [...(alone ? [{ key: path, node: child, required }] : []), ...rowsUnder(path, child)];
  });
  return [...own, ...below];
}

function listed(node: Node): Node | null {
  return node.type === 'array' ? (node.items ?? {}) : null;
}

/** The mapping a node is, or may be. */
function mapping(node: Node): Node | null {
  if (node.properties !== undefined) return node;
  const properties: Record<string, Node> = {};
  for (const option of node.anyOf ?? []) Object.assign(properties, mapping(option)?.properties);
  return Object.keys(properties).length === 0 ? null : { properties };
}

function typeText(node: Node): string {
  if (node.anyOf !== undefined) return unionText(node.anyOf);
  if (node.enum !== undefined) return node.enum.map((value) => code(String(value))).join(', ');
  if (node.const !== undefined) return code(String(node.const));
  if (node.type === 'array') return `list of ${typeText(node.items ?? {})}`;
  if (node.type === 'object') return 'mapping';
  if (node.pattern?.includes('secret') === true) return 'secret reference';
  return node.type === 'string' ? 'text' : (node.type ?? 'anything');
}

function unionText(options: readonly Node[]): string {
  const patterns = options.map(({ pattern }) => pattern);
  if (patterns.includes(DURATION_PATTERN)) return 'duration';
  if (patterns.includes(BYTES_PATTERN)) return 'size';
  const [first] = options;
  if (first?.type === 'integer') return `whole number${bounds(first)}`;
  if (first?.type === 'boolean') return 'true or false';
  if (first?.type === 'number') return 'number between 0 and 1';
  return [...new Set(options.map(typeText))].join(' or ');
}

function bounds({ minimum, maximum }: Node): string {
  const most = maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? '' : ` to ${maximum}`;
  return minimum === undefined ? '' : `, ${minimum}${most}${most === '' ? ' or more' : ''}`;
}

function defaultText({ default: value }: Node): string {
  if (
    value === undefined ||
    (typeof value === 'object' && value !== null && Object.keys(value).length === 0)
  ) {
    return '';
  }
  return code(typeof value === 'string' ? value : JSON.stringify(value));
}
