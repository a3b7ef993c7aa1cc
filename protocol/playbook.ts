import { LineCounter, type ParsedNode, parseDocument } from 'yaml';
import { z } from 'zod';
import { AgentdError, errorMessage } from './errors.ts';
import { templateProblem } from './playbook-template.ts';

/**
 * Playbooks of the scripted model (docs/playbooks.md): a deterministic list of turns. The
 * supervisor reads one at start to refuse a malformed file early; the child plays it.
 */

const milliseconds = z.number().min(0).max(86_400_000);
const bytes = z.number().int().min(1).max(1_073_741_824);
const template = z.string().superRefine((text, context) => {
  const problem = templateProblem(text);
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
});
const templatedJson: z.ZodType<unknown> = z.lazy(() =>
  z.union([
    template,
    z.number(),
    z.boolean(),
    z.null(),
    z.array(templatedJson),
    z.record(z.string(), templatedJson),
  ]),
);
const call = z.strictObject({
  name: z.string().min(1),
  arguments: z.record(z.string(), templatedJson).default({}),
});
const flood = z.union([
  bytes.transform((count) => ({ bytes: count, line: null })),
  z.strictObject({ bytes, line: z.number().int().min(0).max(1_048_576) }),
]);

const FORK_KINDS = ['ordinary', 'setsid', 'holds_stdout', 'ignores_sigterm'] as const;
const forkKinds = z.union([
  z.enum(FORK_KINDS).transform((kind) => [kind]),
  z.array(z.enum(FORK_KINDS)).min(1),
]);
const SIGNALS = ['SIGKILL', 'SIGTERM', 'SIGSEGV', 'SIGABRT', 'SIGSTOP'] as const;

/** One shape for each action; a turn has exactly one of these keys. */
const ACTIONS = {
  final: template,
  text: template,
  tool: call,
  calls: z.array(call).min(1).max(64),
  loop: call,
  refuse: template,
  malformed: z.enum(['bad_json', 'unknown_tool', 'empty']),
  fail: z.enum(['unreachable', 'auth', 'timeout', '5xx', 'rejected']),
  sleep: milliseconds,
  hang: z.literal(true),
  spin: z.union([milliseconds, z.literal(true)]),
  crash: z.union([z.number().int().min(0).max(255), z.enum(SIGNALS)]),
  flood_stdout: flood,
  flood_stderr: flood,
  flood_log: z.number().int().min(1).max(10_000_000),
  fork: z.union([
    forkKinds.transform((kinds) => ({ kinds, seconds: 600 })),
    z.strictObject({ kinds: forkKinds, seconds: z.number().int().min(1).max(86_400) }),
  ]),
  garbage: z.union([template, z.strictObject({ hex: z.string().regex(/^([0-9a-fA-F]{2}\s*)+$/) })]),
};
type Actions = { readonly [K in keyof typeof ACTIONS]: z.infer<(typeof ACTIONS)[K]> };
type ActionKind = keyof Actions;
const ACTION_KINDS = Object.keys(ACTIONS) as ActionKind[];

/** What a turn does, and with what. */
export type PlaybookAction = {
  [K in ActionKind]: { readonly kind: K; readonly value: Actions[K] };
}[ActionKind];
export type ScriptedCall = z.infer<typeof call>;
export type ForkKind = (typeof FORK_KINDS)[number];

export interface PlaybookTurn {
  readonly action: PlaybookAction;
  /** What the scripted endpoint reports for the answer; null: it reports nothing. */
  readonly tokens: { readonly in: number; readonly out: number } | null;
  /** How often the turn is played; Infinity for `forever`. */
  readonly repeat: number;
}

export interface PlaybookCase {
  /** Globs the event must match; null matches every event, and none at all. */
  readonly uri: string | null;
  readonly server: string | null;
  readonly turns: readonly PlaybookTurn[];
}

export interface Playbook {
  /** The first that matches the event is played. */
  readonly cases: readonly PlaybookCase[];
}

const turn = z
  .strictObject({
    ...(Object.fromEntries(ACTION_KINDS.map((kind) => [kind, ACTIONS[kind].optional()])) as {
      [K in ActionKind]: z.ZodOptional<(typeof ACTIONS)[K]>;
    }),
    tokens: z.strictObject({ in: z.number().int().min(0), out: z.number().int().min(0) }).optional(),
    repeat: z.union([z.number().int().min(1), z.literal('forever')]).optional(),
  })
  .transform((value, context): PlaybookTurn => {
    const [kind, ...others] = ACTION_KINDS.filter((name) => value[name] !== undefined);
    if (kind === undefined || others.length > 0) {
      const found = kind === undefined ? 'none' : [kind, ...others].join(' and ');
      context.addIssue({
        code: 'custom',
        message: `a turn has exactly one action, this one has ${found}; actions: ${ACTION_KINDS.join(', ')}`,
      });
      return z.NEVER;
    }
    const endless = kind === 'loop' ? 'forever' : 1;
    const repeat = value.repeat ?? endless;
    return {
      // The key and its value were checked together by the schema above.
      action: { kind, value: value[kind] } as PlaybookAction,
      tokens: value.tokens ?? null,
      repeat: repeat === 'forever' ? Number.POSITIVE_INFINITY : repeat,
    };
  });
const turns = z.array(turn).min(1).max(10_000);

const playbook = z
  .strictObject({
    description: z.string().optional(),
    turns: turns.optional(),
    cases: z
      .array(
        z.strictObject({
          when: z.strictObject({ uri: z.string().optional(), server: z.string().optional() }).optional(),
          turns,
        }),
      )
      .min(1)
      .optional(),
  })
  .transform((value, context): Playbook => {
    if ((value.turns === undefined) === (value.cases === undefined)) {
      context.addIssue({ code: 'custom', message: 'a playbook has either `turns` or `cases`' });
      return z.NEVER;
    }
    if (value.turns !== undefined) return { cases: [{ uri: null, server: null, turns: value.turns }] };
    return {
      cases: (value.cases ?? []).map((entry) => ({
        uri: entry.when?.uri ?? null,
        server: entry.when?.server ?? null,
        turns: entry.turns,
      })),
    };
  });

/**
 * Reads a playbook.
 *
 * @param source named in errors: the path of the file
 * @throws AgentdError PLAYBOOK_INVALID with line and column of the first problem
 */
export function parsePlaybook(text: string, source: string): Playbook {
  const counter = new LineCounter();
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false });
  const at = (offset: number): string => {
    const { line, col } = counter.linePos(offset);
    return `${source}:${line}:${col}`;
  };
  const [broken] = document.errors;
  if (broken !== undefined) fail(at(broken.pos[0]), broken.message);
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    // Aliases that expand without end.
    fail(at(0), errorMessage(error));
  }
  const parsed = playbook.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = deepest(parsed.error.issues);
  const path =
    issue?.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0] ?? ''] : (issue?.path ?? []);
  return fail(
    at(offsetOf(document.contents, path)),
    `${pathText(path)}${issue?.message ?? 'not acceptable'}`,
  );
}

function fail(where: string, what: string): never {
  throw new AgentdError('PLAYBOOK_INVALID', `playbook ${where}: ${what}`);
}

/** A union reports one issue with its branches inside; the most exact branch says what is wrong. */
function deepest(
  issues: readonly z.core.$ZodIssue[],
  base: readonly PropertyKey[] = [],
): z.core.$ZodIssue | undefined {
  const [issue] = issues;
  if (issue === undefined) return undefined;
  const path = [...base, ...issue.path];
  if (issue.code !== 'invalid_union') return { ...issue, path };
  const inner = issue.errors
    .map((branch) => deepest(branch, path))
    .filter((found) => found !== undefined)
    .sort((left, right) => right.path.length - left.path.length || rank(right) - rank(left));
  return inner[0] ?? { ...issue, path };
}

function rank(issue: z.core.$ZodIssue): number {
  return issue.code === 'custom' ? 2 : issue.code === 'invalid_type' ? 0 : 1;
}

function pathText(path: readonly PropertyKey[]): string {
  const text = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  return text === '' ? '' : `${text.replace(/^\./, '')}: `;
}

/** Where in the text the value at `path` begins, or the nearest thing around it that exists. */
function offsetOf(root: ParsedNode | null, path: readonly PropertyKey[]): number {
  let node: unknown = root;
  let offset = root?.range[0] ?? 0;
  for (const part of path) {
    const next = childOf(node, part);
    if (next === null) break;
    offset = next.offset;
    node = next.node;
  }
  return offset;
}

function childOf(node: unknown, part: PropertyKey): { offset: number; node: unknown } | null {
  if (typeof node !== 'object' || node === null || !('items' in node) || !Array.isArray(node.items))
    return null;
  const items: unknown[] = node.items;
  for (const [index, item] of items.entries()) {
    if (typeof item !== 'object' || item === null) continue;
    if ('key' in item && 'value' in item) {
      const { key, value } = item;
      if (hasRange(key) && 'value' in key && key.value === part) return { offset: key.range[0], node: value };
    } else if (index === part && hasRange(item)) {
      return { offset: item.range[0], node: item };
    }
  }
  return null;
}

function hasRange(value: unknown): value is { readonly range: readonly [number, number, number] } {
  return typeof value === 'object' && value !== null && 'range' in value && Array.isArray(value.range);
}
