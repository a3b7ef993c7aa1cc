import { expandPlain, expandProblem } from './expand.ts';
import type { FlagValues } from './flag-layers.ts';
import type { ConfigProblems } from './problems.ts';
import {
  type GivenClaim,
  parseClaim,
  parseServerTags,
  type ServerTags,
  ShorthandError,
} from './shorthand.ts';

/** The flags that are no key of their own: they name files, or add to servers and routes. */
export interface ListFlags {
  /** `--config`; null where the name of the file is not known. */
  readonly configs: readonly (string | null)[];
  readonly tags: readonly ServerTags[];
  readonly continues: readonly string[];
  readonly claims: readonly GivenClaim[];
}

/** Reads them, each `${NAME}` expanded after a flag was taken apart. What is wrong is added to `problems`. */
export function readListFlags(
  flags: FlagValues,
  env: NodeJS.ProcessEnv,
  problems: ConfigProblems,
): ListFlags {
  /** Null for what cannot be read; `take` gets the function that expands a part. */
  const each = <T>(flag: string, take: (text: string, expand: (part: string) => string) => T): (T | null)[] =>
    listFlag(flags, flag).map((text) => {
      let wrong = false;
      const expand = (part: string): string =>
        expandPlain(part, env, (issue) => {
          wrong = true;
          problems.add(expandProblem(issue, flag));
        });
      try {
        const value = take(text, expand);
        return wrong ? null : value;
      } catch (error) {
        if (!(error instanceof ShorthandError)) throw error;
        problems.add({ code: 'USAGE', where: flag, message: error.message });
        return null;
      }
    });
  const continues = each('--continue', (text, expand) => expand(text));
  const claims = each('--claim', (text, expand) => {
    const { match, claim } = parseClaim(text);
    const parts = Object.entries(claim).map(([key, part]) => [key, expand(String(part))]);
    return { match: expand(match), claim: Object.fromEntries(parts) };
  });
  // Each of them may make a route.
  if ([...continues, ...claims].includes(null)) problems.doubt(['routes']);
  return {
    configs: each('--config', (text, expand) => expand(text)),
    tags: known(
      each('--mcp-tags', (text, expand) => {
        const { name, tags } = parseServerTags(text);
        return { name: expand(name), tags: tags.map(expand) };
      }),
    ),
    continues: known(continues),
    claims: known(claims),
  };
}

function known<T>(values: readonly (T | null)[]): T[] {
  return values.filter((value) => value !== null);
}

function listFlag(flags: FlagValues, name: string): readonly string[] {
  const given = flags[name];
  if (given === undefined || given === true) return [];
  return typeof given === 'string' ? [given] : given;
}
