import type { ToolDescriptor } from '../../protocol/frames.ts';

/** Data-flow tags of servers that must never meet in one run. */
const TRIFECTA = ['untrusted_input', 'sensitive', 'egress'] as const;

/**
 * The Rule of Two: a run may combine at most two of untrusted input, sensitive data and a way out.
 * Returns why a scope breaks it, for people and models, or null.
 *
 * @param tagsOf data-flow tags of a server, by its name
 */
export function ruleOfTwo(
  tools: readonly ToolDescriptor[],
  tagsOf: (server: string) => readonly string[],
): string | null {
  const carriers = TRIFECTA.map((tag) => tools.find((tool) => tagsOf(tool.server).includes(tag)));
  if (carriers.some((tool) => tool === undefined)) return null;
  const named = TRIFECTA.map((tag, index) => `${tag} (${carriers[index]?.server})`).join(', ');
  return `the run would combine ${named}, so whoever writes its input could make it send sensitive data out; leave one of these servers out of its tools, or allow it with --allow-trifecta`;
}
