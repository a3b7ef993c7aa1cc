import type { ErrorCode } from '../../protocol/errors.ts';
import type { ConfigProblems, PathPattern } from './problems.ts';
import type { TreePath } from './tree.ts';

/**
 * What the configuration is wanted for. `describe` (`--capabilities`): what a run needs and is missing
 * is not missed. `validate` (`--validate-config`): secrets may live on another machine.
 */
export type Purpose = 'run' | 'validate' | 'describe';

/** What the steps from document to configuration share. */
export interface ResolveContext {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly purpose: Purpose;
  readonly problems: ConfigProblems;
  readonly warnings: string[];
  /** Where a key was written, for people; null when nothing set it. */
  where(path: TreePath): string | null;
  /** Index of the layer that set a key; -1 when nothing did. */
  rank(path: TreePath): number;
  /** The path, as it was written, of a path in the document, from which what is unknown was left out. */
  written(path: PathPattern): PathPattern;
}

export interface Refusal {
  /** Default: CONFIG_INVALID. */
  readonly code?: ErrorCode;
  readonly remedy?: string;
  /** What the refusal rests on. Default: the key it stands at. */
  readonly needs?: readonly PathPattern[];
  /** Where it was written, when that is not the place of the key. */
  readonly where?: string | null;
  /** The configuration goes on without the value: what rests on it is not known from then on. */
  readonly left?: 'out';
}

/**
 * Records that the configuration is not acceptable, at the key that says so; nothing when what that
 * rests on is wrong already.
 */
export function refuse(context: ResolveContext, path: TreePath, message: string, more: Refusal = {}): void {
  const { problems } = context;
  const { code = 'CONFIG_INVALID' } = more;
  const { remedy, where = context.where(path), needs = path.length === 0 ? [] : [path], left } = more;
  if (!needs.every((need) => problems.isKnown(context.written(need)))) return;
  problems.add({ code, where, message, ...(remedy === undefined ? {} : { remedy }) });
  if (left === 'out') problems.doubt(context.written(path));
}
