import type { ConfigProblems } from './problems.ts';
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
}

/** Records that the configuration is not acceptable, at the key that says so. */
export function refuse(context: ResolveContext, path: TreePath, message: string, remedy?: string): void {
  context.problems.add({
    code: 'CONFIG_INVALID',
    where: context.where(path),
    message,
    ...(remedy === undefined ? {} : { remedy }),
  });
}
