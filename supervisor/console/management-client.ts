import { setTimeout as pause } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpError, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import type { Agent } from 'undici';
import { z } from 'zod';
import { AgentdError } from '../../protocol/errors.ts';
import type { OperatorMethod, operatorParams } from '../../protocol/management.ts';
import { AGENT_VERSION } from '../../protocol/versions.ts';
import { networkReason } from '../mcp/http-client.ts';
import { agentFor, CALL_MS, endpointOf, type ManagementSource, transportTo } from './endpoint.ts';

/** JSON-RPC codes of the management surface that mean something here. */
const METHOD_NOT_FOUND = -32601;
const RESOURCE_NOT_FOUND = -32002;
/** How long an instance may take to hear that a session is over, ms. */
const GOODBYE_MS = 500;

/** What an instance adds to an error: the code and remedy of its own AgentdError. */
const errorData = z.object({ code: z.string(), remedy: z.string() }).partial();

type Params<M extends OperatorMethod> = z.infer<(typeof operatorParams)[M]>;

/** One session with the management surface of one instance. */
export interface ManagementClient {
  readonly url: string;
  /**
   * Reads a resource that holds JSON; null when the instance has no such resource.
   *
   * @throws AgentdError MCP_UNAVAILABLE, MCP_UNAUTHORIZED, MCP_PROTOCOL
   */
  read<T extends z.ZodType>(uri: string, schema: T): Promise<z.infer<T> | null>;
  /** Reads a resource that holds text; null when the instance has no such resource. */
  readText(uri: string): Promise<string | null>;
  /**
   * Calls an operator method.
   *
   * @throws AgentdError as above, and MCP_PROTOCOL with the instance's own words when it refuses
   */
  operate<M extends OperatorMethod>(method: M, params: Params<M>): Promise<Record<string, unknown>>;
  /** Asks to be told when a resource changes; where that is refused nothing is told. */
  subscribe(uri: string): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens a session.
 *
 * @param updated told of changes of what is subscribed to
 * @throws AgentdError USAGE (exit 2) for a URL or file that cannot be used; MCP_UNAVAILABLE or
 *   MCP_UNAUTHORIZED (exit 1) when the instance cannot be reached or does not let us in
 */
export async function openManagement(
  source: ManagementSource,
  updated: () => void = () => undefined,
): Promise<ManagementClient> {
  const endpoint = endpointOf(source.url);
  const agent = agentFor(source);
  const client = new Client({ name: 'agentd-console', version: AGENT_VERSION });
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, updated);
  const transport = transportTo(endpoint, source, agent);
  const close = (): Promise<void> => closeAll(client, () => transport.terminateSession(), agent);
  try {
    await client.connect(transport, { timeout: CALL_MS });
    if (client.getServerCapabilities()?.resources === undefined) throw notManagement(source);
  } catch (error) {
    await close();
    throw explained(source, error);
  }
  const asking = <R>(ask: () => Promise<R>): Promise<R> =>
    ask().catch((error: unknown) => {
      throw explained(source, error);
    });
  const readText = (uri: string): Promise<string | null> =>
    asking(async () => {
      try {
        const { contents } = await client.readResource({ uri }, { timeout: CALL_MS });
        const [first] = contents;
        return first !== undefined && 'text' in first ? first.text : null;
      } catch (error) {
        if (error instanceof McpError && error.code === RESOURCE_NOT_FOUND) return null;
        throw error;
      }
    });
  return {
    url: source.url,
    readText,
    read: async (uri, schema) => {
      const text = await readText(uri);
      return text === null ? null : parsed(source, uri, text, schema);
    },
    operate: (method, params) =>
      asking(() => client.request({ method, params }, z.looseObject({}), { timeout: CALL_MS })),
    subscribe: async (uri) => {
      await asking(() =>
        client.subscribeResource({ uri }, { timeout: CALL_MS }).catch((error: unknown) => {
          // A server that answers "no" is there.
          if (!(error instanceof McpError)) throw error;
        }),
      );
    },
    close,
  };
}

/** Opens a session, works in it and closes it whatever happens. */
export async function withManagement<R>(
  source: ManagementSource,
  work: (client: ManagementClient) => Promise<R>,
): Promise<R> {
  const client = await openManagement(source);
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

async function closeAll(client: Client, goodbye: () => Promise<void>, agent: Agent): Promise<void> {
  await Promise.race([goodbye().catch(() => undefined), pause(GOODBYE_MS, undefined, { ref: false })]);
  await client.close().catch(() => undefined);
  await agent.destroy();
}

function parsed<T extends z.ZodType>(
  source: ManagementSource,
  uri: string,
  text: string,
  schema: T,
): z.infer<T> {
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw new AgentdError('MCP_PROTOCOL', `${source.url} answers ${uri} with a document of another shape`, {
      cause: error,
      remedy: 'Use the same version of agentd on both sides; `agentd --version` prints it.',
    });
  }
}

function notManagement({ url }: ManagementSource): AgentdError {
  return new AgentdError('MCP_UNAUTHORIZED', `${url} shows nothing of itself to this caller`, {
    remedy:
      'Check that the URL is the one of --serve-mcp, and present a credential: --bearer-file, or --cert and --key.',
  });
}

/** What went wrong, in words an operator can act upon. */
function explained(source: ManagementSource, error: unknown): AgentdError {
  if (error instanceof AgentdError) return error;
  const { url } = source;
  if (error instanceof StreamableHTTPError && (error.code === 401 || error.code === 403)) {
    return new AgentdError('MCP_UNAUTHORIZED', `${url} does not let us in (HTTP ${error.code})`, {
      cause: error,
      remedy:
        source.bearer === null
          ? 'Present the token of --serve-bearer with --bearer-file PATH, or a client certificate with --cert and --key.'
          : 'The token in --bearer-file is not the one of --serve-bearer; check that the file is current.',
    });
  }
  if (error instanceof StreamableHTTPError && error.code === 404) {
    return new AgentdError('MCP_PROTOCOL', `${url} is no management surface (HTTP 404)`, {
      cause: error,
      remedy: 'Use the URL of --serve-mcp, which the proc.ready line shows as management_url.',
    });
  }
  if (error instanceof McpError && error.code === METHOD_NOT_FOUND) return notManagement(source);
  if (error instanceof McpError && error.code !== RequestTimeout) {
    const data = errorData.safeParse(error.data).data;
    const message = error.message.replace(/^MCP error -?\d+: /, '');
    return new AgentdError('MCP_PROTOCOL', `${url}: ${message}`, {
      cause: error,
      ...(data?.remedy === undefined ? {} : { remedy: data.remedy }),
    });
  }
  return new AgentdError('MCP_UNAVAILABLE', `cannot reach ${url}: ${networkReason(error)}`, {
    cause: error,
    remedy:
      'Check that the instance runs with --serve-mcp and that the URL is the one it logs at proc.ready.',
  });
}

/** The SDK's own code for an answer that did not come in time. */
const RequestTimeout = -32001;
