import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CallToolRequestSchema,
  type CallToolResult,
  ListResourcesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  SubscribeRequestSchema,
  type Tool,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import { VERSIONS } from '../../protocol/versions.ts';
import { WORK_PENDING_URI } from '../../protocol/work-tools.ts';
import { RPC } from '../surface/http-reply.ts';
import { RpcError } from '../surface/rpc-error.ts';
import type { Log } from '../telemetry/log.ts';
import type { Ledger } from './ledger.ts';
import { type CallOutcome, callerOf } from './work-tool.ts';
import { recordResult, statsResult, WORK_TOOLS } from './work-tools.ts';

/** The part of a session the work server needs. */
export interface WorkSession {
  readonly sessionId: string;
  readonly adopted: boolean;
  subscribe(uri: string): void;
  unsubscribe(uri: string): void;
}

export interface WorkServerOptions {
  readonly ledger: Ledger;
  readonly log: Log;
  /** Told of every call once it is answered. */
  readonly onCall?: (tool: string, outcome: CallOutcome, durationMs: number) => void;
}

/** Items shown in work://pending. */
const PENDING_PAGE = 100;

const TOOLS_BY_NAME = new Map(WORK_TOOLS.map((tool) => [tool.name, tool]));
const PENDING_RESOURCE = {
  uri: WORK_PENDING_URI,
  name: 'pending work',
  description: 'How much waits, and the items that could be claimed now, up to a hundred.',
  mimeType: 'application/json',
};

let listed: Tool[] | null = null;

/** The tools as `tools/list` shows them. */
export function workToolList(): Tool[] {
  listed ??= WORK_TOOLS.map(({ name, description, input }) => ({
    name,
    description,
    inputSchema: z.toJSONSchema(input, { io: 'input' }) as Tool['inputSchema'],
  }));
  return listed;
}

/** The MCP server of one session of a coordination server (contract, section 9). */
export function workServer(options: WorkServerOptions, session: WorkSession): Server {
  const { ledger } = options;
  const server = new Server(
    { name: 'agentd-coordinate', version: VERSIONS.contract_version },
    { capabilities: { tools: {}, resources: { subscribe: true } } },
  );
  // It may have subscribed at the server that began it; one word too many does no harm.
  if (session.adopted) session.subscribe(WORK_PENDING_URI);
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: workToolList() }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) =>
    callWorkTool(options, session.sessionId, params.name, params.arguments ?? {}, params._meta),
  );
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: [PENDING_RESOURCE] }));
  server.setRequestHandler(ReadResourceRequestSchema, async ({ params }) => {
    requirePending(params.uri);
    const { uri, mimeType } = PENDING_RESOURCE;
    return { contents: [{ uri, mimeType, text: await pendingText(ledger) }] };
  });
  server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    requirePending(params.uri);
    session.subscribe(params.uri);
    return {};
  });
  server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    session.unsubscribe(params.uri);
    return {};
  });
  return server;
}

async function pendingText(ledger: Ledger): Promise<string> {
  const [stats, items] = await Promise.all([ledger.stats(), ledger.pending(PENDING_PAGE)]);
  return JSON.stringify({ ...statsResult(stats), items: items.map(recordResult) });
}

function requirePending(uri: string): void {
  if (uri !== WORK_PENDING_URI) throw new RpcError(RPC.RESOURCE_NOT_FOUND, `there is no resource ${uri}`);
}

/** Answers one call. A fault is a result with `isError`; what is merely lost or refused is not. */
async function callWorkTool(
  options: WorkServerOptions,
  sessionId: string,
  name: string,
  args: unknown,
  meta: Readonly<Record<string, unknown>> | undefined,
): Promise<CallToolResult> {
  const tool = TOOLS_BY_NAME.get(name);
  if (tool === undefined) throw new RpcError(RPC.INVALID_PARAMS, `unknown tool ${name}`);
  const began = performance.now();
  try {
    const { outcome, result } = await tool.call(options.ledger, args, callerOf(meta, sessionId));
    options.onCall?.(name, outcome, performance.now() - began);
    return { content: [{ type: 'text', text: JSON.stringify(result) }], structuredContent: result };
  } catch (error) {
    options.onCall?.(name, 'error', performance.now() - began);
    return faulty(options.log, name, error);
  }
}

function faulty(log: Log, tool: string, error: unknown): CallToolResult {
  const known = error instanceof AgentdError;
  if (!known || error.code !== 'WORK_ARGUMENTS_INVALID') {
    log.error('tool.result', {
      tool,
      msg: 'a call could not be answered',
      err: { type: known ? error.code : 'Error', message: errorMessage(error) },
    });
  }
  const text = known ? `${error.message}. ${error.remedy}` : `${tool} failed`;
  return {
    isError: true,
    content: [{ type: 'text', text }],
    ...(known ? { _meta: { 'agentd/error': { code: error.code, kind: error.kind } } } : {}),
  };
}
