import { once } from 'node:events';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CallToolRequestSchema,
  ListToolsRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { type RunningHttpServer, startHttpServer } from '../../supervisor/surface/http-server.ts';
import {
  type McpEndpoint,
  type McpEndpointOptions,
  mcpEndpoint,
  type SessionContext,
} from '../../supervisor/surface/mcp-endpoint.ts';
import { ResourceHub } from '../../supervisor/surface/resource-hub.ts';
import { nullLog } from './null-log.ts';

/** An MCP endpoint on a listener of its own, with a tool that answers, one that hangs, and a hub. */
export interface ServedEndpoint {
  readonly url: string;
  readonly hub: ResourceHub;
  readonly endpoint: McpEndpoint;
  readonly http: RunningHttpServer;
  /** How many calls of the tool `hang` were aborted. */
  readonly aborted: () => number;
  close(): Promise<void>;
}

export async function serveEndpoint(
  options: Partial<McpEndpointOptions> & { readonly bearer?: () => string } = {},
): Promise<ServedEndpoint> {
  const hub = new ResourceHub();
  let aborted = 0;
  const build = (session: SessionContext): Server => {
    const server = new Server(
      { name: 'test', version: '1' },
      { capabilities: { tools: {}, resources: { subscribe: true, listChanged: true } } },
    );
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [] }));
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
      if (params.name === 'hang') {
        await once(signal, 'abort');
        aborted += 1;
      }
      return { content: [{ type: 'text', text: `${params.name} ${JSON.stringify(params._meta ?? {})}` }] };
    });
    server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
      session.subscribe(params.uri);
      return {};
    });
    server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
      session.unsubscribe(params.uri);
      return {};
    });
    return server;
  };
  const { bearer, ...rest } = options;
  const endpoint = mcpEndpoint({ build, hub, log: nullLog, ...rest });
  const http = await startHttpServer({
    url: 'http://127.0.0.1:0',
    routes: endpoint.routes,
    log: nullLog,
    ...(bearer === undefined ? {} : { bearer }),
  });
  return {
    url: `${http.url}/mcp`,
    hub,
    endpoint,
    http,
    aborted: () => aborted,
    close: async () => {
      await endpoint.close(0);
      await http.close(0);
    },
  };
}

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
};

/** Posts a body as a Streamable HTTP client would. */
export function postMessage(
  url: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

/** Posts an initialize request. */
export function postInitialize(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return postMessage(url, INITIALIZE, headers);
}

/** Opens a session by hand; its id. */
export async function openSession(url: string): Promise<string> {
  const response = await postInitialize(url);
  await response.text();
  return response.headers.get('mcp-session-id') ?? '';
}

/** An event stream read by hand. */
export interface RawStream {
  /** The next event's text. */
  next(): Promise<string>;
  cancel(): Promise<void>;
}

export async function openStream(url: string, session: string, lastEventId?: string): Promise<RawStream> {
  const response = await fetch(url, {
    headers: {
      accept: 'text/event-stream',
      'mcp-session-id': session,
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
  });
  if (response.status !== 200) throw new Error(`the stream was answered ${response.status}`);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return {
    next: async () => {
      while (!text.includes('\n\n')) {
        const chunk = await reader?.read();
        if (chunk?.value === undefined) throw new Error(`the stream ended after: ${text}`);
        text += chunk.value;
      }
      const end = text.indexOf('\n\n');
      const event = text.slice(0, end);
      text = text.slice(end + 2);
      return event;
    },
    cancel: async () => {
      await reader?.cancel();
    },
  };
}
