import type { InventoryDocument, SubagentDocument } from '../../protocol/management.ts';
import { durationText } from '../telemetry/duration-text.ts';
import { printable } from '../telemetry/log-text.ts';
import { bytesText, percentText, plural } from './figures.ts';
import { type InstanceState, instanceLine, loadLine } from './instance-view.ts';
import type { Paint } from './style.ts';

interface Branch {
  readonly text: string;
  readonly under: readonly Branch[];
}

/** An instance and everything under it as a tree: agents, sessions, routes and MCP servers. */
export function treeLines(state: InstanceState, paint: Paint): string[] {
  const { status, inventory } = state;
  const under = [
    ...agentBranches(inventory.subagents, paint),
    ...sessionBranches(inventory, paint),
    ...routeBranches(inventory, paint),
    ...serverBranches(inventory, paint),
  ];
  return [
    instanceLine(status, paint),
    `${paint('dim', under.length === 0 ? '   ' : '│  ')}${loadLine(state)}`,
    ...drawn(under, paint, ''),
  ];
}

/** The agents alone, as a tree. */
export function agentTreeLines(subagents: readonly SubagentDocument[], paint: Paint): string[] {
  return drawn(agentBranches(subagents, paint), paint, '');
}

function drawn(branches: readonly Branch[], paint: Paint, lead: string): string[] {
  return branches.flatMap(({ text, under }, at) => {
    const last = at === branches.length - 1;
    return [
      paint('dim', `${lead}${last ? '└─ ' : '├─ '}`) + text,
      ...drawn(under, paint, `${lead}${last ? '   ' : '│  '}`),
    ];
  });
}

/** An agent whose parent is not listed (it has ended, or the engine started it) is a root. */
function agentBranches(agents: readonly SubagentDocument[], paint: Paint): Branch[] {
  const listed = new Set(agents.map(({ handle }) => handle));
  const childrenOf = (handle: string): Branch[] =>
    agents.filter(({ parent }) => parent === handle).map(branchOf);
  const branchOf = (agent: SubagentDocument): Branch => ({
    text: agentText(agent, paint),
    under: childrenOf(agent.handle),
  });
  return agents.filter(({ parent }) => parent === null || !listed.has(parent)).map(branchOf);
}

function agentText(agent: SubagentDocument, paint: Paint): string {
  const { usage } = agent;
  const state = agent.state ?? agent.status;
  return [
    paint('bold', agent.handle),
    paint(state === 'running' ? 'green' : 'yellow', printable(state)),
    ...(agent.health === undefined || agent.health === 'healthy'
      ? []
      : [paint('red', printable(agent.health))]),
    ...(agent.route === null ? [] : [`route ${printable(agent.route)}`]),
    plural(usage.steps, 'step'),
    plural(usage.tokens_in + usage.tokens_out, 'token'),
    ...(agent.rss_bytes === undefined
      ? []
      : [`${bytesText(agent.rss_bytes)} ${percentText(agent.cpu_percent)} CPU`]),
    ...(agent.age_ms === undefined ? [] : [paint('dim', durationText(agent.age_ms))]),
  ].join('  ');
}

function sessionBranches({ sessions }: InventoryDocument, paint: Paint): Branch[] {
  return sessions.map(({ id, state, turns }) => ({
    text: `${paint('cyan', 'session')} ${printable(id)}  ${printable(state)}  ${plural(turns, 'turn')}`,
    under: [],
  }));
}

function routeBranches({ routes }: InventoryDocument, paint: Paint): Branch[] {
  return routes.map(({ name, match, claim, inflight }) => ({
    text: `${paint('cyan', 'route')} ${printable(name)}  ${printable(match)}${claim ? '  claimed' : ''}  ${inflight} in flight`,
    under: [],
  }));
}

function serverBranches({ mcp_servers: servers }: InventoryDocument, paint: Paint): Branch[] {
  return servers.map(({ name, state, tools, tags }) => ({
    text: [
      `${paint('cyan', 'mcp')} ${printable(name)}`,
      paint(state === 'live' ? 'green' : 'red', printable(state)),
      plural(tools, 'tool'),
      ...(tags.length === 0 ? [] : [paint('dim', printable(tags.join(', ')))]),
    ].join('  '),
    under: [],
  }));
}
