import { setTimeout as pause } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { McpError, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import type { Agent } from 'undici';
import { z } from 'zod';
import { AgentdError } from '../../protocol/errors.ts';
import { LOG_LEVELS, type LogLevel } from '../../protocol/event-line.ts';
import { agentFor, CALL_MS, endpointOf, type ManagementSource, transportTo } from '../console/endpoint.ts';
import { networkReason } from '../mcp/http-client.ts';

/** Reads `agent://events` of one instance, once or for as long as it takes. */

/** What this reader needs of a line; the vocabulary of a newer instance may have grown. */
const readableLine = z.looseObject({
  seq: z.number(),
  ts: z.string(),
  level: z.enum(LOG_LEVELS).catch('info'),
  event: z.string(),
  agent_path: z.string(),
  msg: z.string().optional(),
  err: z.object({ type: z.string(), message: z.string() }).optional(),
});
export type ReadableLine = z.infer<typeof readableLine>;

export const readablePage = z.object({
  events_schema: z.string(),
  newest_seq: z.number(),
  dropped: z.number(),
  events: z.array(readableLine),
  more: z.boolean().optional(),
});

export interface EventFilter {
  readonly level: LogLevel | null;
  readonly prefixes: string | null;
}

export interface EventSink {
  line(line: ReadableLine): void;
  /** Something the reader should know about the stream itself. */
  note(text: string): void;
}

const EVENTS_URI = 'agent://events';
/** The least time between two reads, and the most without a notification, ms. */
const LEAST_READ_MS = 100;
const MOST_READ_MS = 2_000;
const RETRY_MS = 1_000;

/**
 * Prints the lines of one instance to `sink`: those kept now, and with `follow` all later ones until
 * `stopped`, over restarts and outages of the instance.
 *
 * @throws AgentdError MCP_UNAVAILABLE (exit 6) without `follow` when the instance cannot be read, USAGE
 *   for a URL or file that cannot be used
 */
export async function streamEvents(
  source: ManagementSource,
  filter: EventFilter,
  follow: boolean,
  sink: EventSink,
  stopped: AbortSignal,
): Promise<void> {
  const endpoint = endpointOf(source.url);
  const agent = agentFor(source);
  let cursor = 0;
  let told = '';
  try {
    while (!stopped.aborted) {
      try {
        await withClient(endpoint, source, agent, async (client, updated) => {
          // Where that is not offered, looking every now and then has to do.
          if (follow)
            await client.subscribeResource({ uri: EVENTS_URI }, { timeout: CALL_MS }).catch(acceptRefusal);
          do {
            cursor = await readOn(client, filter, cursor, sink);
            told = '';
            if (follow) await pauseFor(LEAST_READ_MS, stopped);
          } while (follow && !stopped.aborted && (await updated(stopped)));
        });
        if (!follow) return;
      } catch (error) {
        const text = `${source.url}: ${networkReason(error)}`;
        if (!follow) {
          throw new AgentdError('MCP_UNAVAILABLE', `cannot read the events of ${text}`, {
            cause: error,
            exitCode: 6,
            remedy: 'Start the instance with --serve-mcp, or correct the URL.',
          });
        }
        if (text !== told && !stopped.aborted) sink.note(`${text}; trying again`);
        told = text;
        await pauseFor(RETRY_MS, stopped);
      }
    }
  } finally {
    await agent.destroy();
  }
}

/** Reads until nothing newer is there; returns the new cursor. */
async function readOn(client: Client, filter: EventFilter, cursor: number, sink: EventSink): Promise<number> {
  let after = cursor;
  for (;;) {
    const query = new URLSearchParams({ after: String(after) });
    if (filter.level !== null) query.set('level', filter.level);
    if (filter.prefixes !== null) query.set('event', filter.prefixes);
    const { contents } = await client.readResource({ uri: `${EVENTS_URI}?${query}` }, { timeout: CALL_MS });
    const [first] = contents;
    const page = readablePage.parse(
      JSON.parse(first !== undefined && 'text' in first ? String(first.text) : ''),
    );
    if (page.newest_seq < after) {
      sink.note('the instance was started again');
      after = 0;
      continue;
    }
    if (after > 0 && page.dropped > 0)
      sink.note(`${page.dropped} lines were overwritten before they could be read`);
    for (const line of page.events) sink.line(line);
    after = page.more ? (page.events.at(-1)?.seq ?? page.newest_seq) : page.newest_seq;
    if (!page.more) return after;
  }
}

type Updated = (stopped: AbortSignal) => Promise<true>;

/** Opens a session, runs `work` in it and closes it whatever happens. */
async function withClient(
  endpoint: URL,
  source: ManagementSource,
  agent: Agent,
  work: (client: Client, updated: Updated) => Promise<void>,
): Promise<void> {
  const client = new Client({ name: 'agentd-events', version: '1.0.0' });
  const transport = transportTo(endpoint, source, agent);
  let wake = new AbortController();
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, () => wake.abort());
  const closed = new AbortController();
  client.onclose = () => closed.abort();
  try {
    await client.connect(transport, { timeout: CALL_MS });
    await work(client, async (stopped) => {
      await pauseFor(MOST_READ_MS, AbortSignal.any([stopped, wake.signal, closed.signal]));
      wake = new AbortController();
      return true;
    });
  } finally {
    await Promise.race([
      transport.terminateSession().catch(() => undefined),
      pause(500, undefined, { ref: false }),
    ]);
    await client.close().catch(() => undefined);
  }
}

/** A server that answers "no" is there; anything else is for the caller. */
function acceptRefusal(error: unknown): void {
  if (!(error instanceof McpError)) throw error;
}

/** Waits `ms`, or until the signal. */
async function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal }).catch(() => undefined);
}
