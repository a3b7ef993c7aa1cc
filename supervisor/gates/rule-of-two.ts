/**
 * The Rule of Two: a run that reads what strangers wrote, sees what is confidential and can send
 * things out can be talked into leaking, whatever it was told. Two of the three are allowed.
 */

const TRIFECTA = ['untrusted_input', 'sensitive', 'egress'] as const;

/**
 * Why a scope is not allowed in one run, or null.
 *
 * @param servers the servers whose tools are in scope
 * @param tagsOf the data-flow tags of a server
 */
export function ruleOfTwo(
  servers: readonly string[],
  tagsOf: (server: string) => readonly string[],
): string | null {
  const holders = TRIFECTA.map((tag) => ({ tag, server: servers.find((one) => tagsOf(one).includes(tag)) }));
  if (holders.some(({ server }) => server === undefined)) return null;
  const named = holders.map(({ tag, server }) => `${tag} (${server})`).join(', ');
  return `one run may not combine ${named}: narrow its tools, or start agentd with --allow-trifecta`;
}
