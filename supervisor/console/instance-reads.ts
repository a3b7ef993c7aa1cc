import type { z } from 'zod';
import { AgentdError } from '../../protocol/errors.ts';
import {
  capacityDocument,
  inventoryDocument,
  statusDocument,
  subagentDocument,
  subagentResultDocument,
} from '../../protocol/management.ts';
import { type ReadableLine, readablePage } from '../cli/event-stream.ts';
import type { AgentDetails } from './agent-view.ts';
import type { InstanceState } from './instance-view.ts';
import type { ManagementClient } from './management-client.ts';

/** What the verbs read of an instance. */

/** @throws AgentdError */
export async function readInstance(client: ManagementClient): Promise<InstanceState> {
  const [status, inventory, capacity] = await Promise.all([
    required(client, 'agent://status', statusDocument),
    required(client, 'agent://inventory', inventoryDocument),
    required(client, 'agent://capacity', capacityDocument),
  ]);
  return { url: client.url, status, inventory, capacity };
}

/**
 * @param kept how many of its latest events are wanted
 * @throws AgentdError SUBAGENT_UNKNOWN (exit 1)
 */
export async function readAgent(
  client: ManagementClient,
  handle: string,
  kept: number,
): Promise<AgentDetails> {
  const uri = `agent://subagent/${encodeURIComponent(handle)}`;
  const agent = await client.read(uri, subagentDocument);
  if (agent === null) throw unknownHandle(client, handle);
  const [result, events] = await Promise.all([
    client.read(`${uri}/result`, subagentResultDocument),
    kept === 0 ? null : readEvents(client, handle, kept),
  ]);
  return { agent, result, events };
}

export function unknownHandle({ url }: ManagementClient, handle: string): AgentdError {
  return new AgentdError('SUBAGENT_UNKNOWN', `${url} knows no agent ${handle}`, {
    remedy: '`agentd ps` lists the handles of those that run; only the latest of those that ended are kept.',
  });
}

/** The latest lines of an agent and everything below it; null when the stream is not served. */
async function readEvents(
  client: ManagementClient,
  handle: string,
  kept: number,
): Promise<ReadableLine[] | null> {
  let after = 0;
  let lines: ReadableLine[] = [];
  for (;;) {
    const page = await client.read(`agent://events?after=${after}`, readablePage);
    if (page === null) return null;
    const own = page.events.filter(
      ({ agent_path: path }) => path === handle || path.startsWith(`${handle}.`),
    );
    lines = [...lines, ...own].slice(-kept);
    const last = page.events.at(-1)?.seq ?? page.newest_seq;
    if (page.more !== true || last <= after) return lines;
    after = last;
  }
}

async function required<T extends z.ZodType>(
  client: ManagementClient,
  uri: string,
  schema: T,
): Promise<z.infer<T>> {
  const document = await client.read(uri, schema);
  if (document !== null) return document;
  throw new AgentdError('MCP_PROTOCOL', `${client.url} serves no ${uri}, so it is not a supervisor`, {
    remedy: 'Use the URL of --serve-mcp of a supervisor, not that of an inbox or a coordination server.',
  });
}
