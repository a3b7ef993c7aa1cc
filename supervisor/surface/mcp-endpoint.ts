import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { isInitializeRequest, JSONRPCMessageSchema } from '@modelcontextprotocol/sdk/types.js';
import type { Log } from '../telemetry/log.ts';
import { RPC, sendRpcError } from './http-reply.ts';
import type { HttpRequest, HttpRoute } from './http-server.ts';
import { McpSession, type SessionContext, type SessionServer } from './mcp-session.ts';
import type { ResourceHub } from './resource-hub.ts';

export type { SessionContext } from './mcp-session.ts';

/** Where an MCP endpoint is served. */
export const MCP_PATH = '/mcp';

export interface McpEndpointOptions {
  /** Makes the server of one session: the SDK's Server or McpServer, not yet connected. */
  readonly build: (session: SessionContext) => SessionServer;
  /** Whose notifications sessions can subscribe to. */
  readonly hub?: ResourceHub;
  readonly maxSessions?: number;
  /** A session without open stream or call is ended after this long, ms. */
  readonly idleMs?: number;
  /**
   * Takes a session it does not know over, instead of refusing it: for servers that keep nothing in
   * a session and stand side by side behind one address, any of which may die.
   */
  readonly adopt?: boolean;
  /** Who may call it. Default: management only. */
  readonly access?: 'management' | 'anyone';
  readonly log: Log;
}

export interface McpEndpoint {
  readonly routes: readonly HttpRoute[];
  readonly sessionCount: number;
  /** Ends event streams at once, lets calls in flight finish within `budgetMs`, ends every session. */
  close(budgetMs: number): Promise<void>;
}

const MAX_SESSIONS = 1024;
const IDLE_MS = 10 * 60_000;
const SWEEP_MS = 15_000;
/** When the table is full, a session unused for this long may be ended to make room, ms. */
const EVICTABLE_MS = 10_000;
/** What a session id of ours looks like; nothing else is taken over. */
const SESSION_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Serves MCP over Streamable HTTP with stateful sessions on POST, GET and DELETE /mcp. */
export function mcpEndpoint(options: McpEndpointOptions): McpEndpoint {
  const sessions = new Map<string, McpSession>();
  const adopting = new Map<string, Promise<McpSession | null>>();
  const maxSessions = options.maxSessions ?? MAX_SESSIONS;
  const idleMs = options.idleMs ?? IDLE_MS;
  const now = (): number => performance.now();
  let closing = false;
  const sweep = setInterval(
    () => {
      for (const session of sessions.values()) if (session.idleMs() > idleMs) void endSession(session);
    },
    Math.min(SWEEP_MS, idleMs),
  );
  sweep.unref();

  const endSession = (session: McpSession): Promise<void> =>
    session.end().catch((error: unknown) => {
      options.log.debug('mcp.disconnect', { session: session.sessionId, msg: String(error) });
    });

  /** The session a request names, or null after answering that it cannot be used. */
  const find = async (request: HttpRequest, res: ServerResponse): Promise<McpSession | null> => {
    const id = request.headers['mcp-session-id'];
    if (typeof id !== 'string') {
      sendRpcError(res, 400, RPC.TRANSPORT, 'the Mcp-Session-Id header is required after initialize');
      return null;
    }
    const session = await (adopting.get(id) ?? sessions.get(id) ?? adopt(request, id));
    // 404 makes a client initialise again. Rights do not carry over to another kind of caller.
    if (session === null || session.management !== request.management) {
      sendRpcError(res, 404, RPC.SESSION_NOT_FOUND, 'session not found');
      return null;
    }
    return session;
  };

  const makeRoom = (): boolean => {
    if (sessions.size < maxSessions) return true;
    let oldest: McpSession | null = null;
    for (const session of sessions.values()) {
      if (session.idleMs() > Math.max(EVICTABLE_MS, oldest?.idleMs() ?? 0)) oldest = session;
    }
    if (oldest === null) return false;
    void endSession(oldest);
    return true;
  };

  const begin = (id: string, management: boolean, adopted: boolean): McpSession => {
    const session = new McpSession({
      sessionId: id,
      management,
      adopted,
      hub: options.hub ?? null,
      now,
      onEnd: () => {
        if (sessions.delete(id)) options.log.debug('mcp.disconnect', { session: id });
      },
    });
    sessions.set(id, session);
    return session;
  };

  /** Begins a session that another server began before, as if it had been initialised here. */
  const adopt = (request: HttpRequest, id: string): Promise<McpSession | null> | null => {
    if (options.adopt !== true || closing || request.method === 'DELETE') return null;
    if (!SESSION_ID.test(id) || !makeRoom()) return null;
    const resume = async (): Promise<McpSession | null> => {
      const session = begin(id, request.management, true);
      try {
        await session.open(options.build(session));
        await session.resume(request);
        return session;
      } catch (error) {
        options.log.warn('mcp.connect.fail', { session: id, msg: String(error) });
        await endSession(session);
        return null;
      } finally {
        adopting.delete(id);
      }
    };
    const resumed = resume();
    adopting.set(id, resumed);
    return resumed;
  };

  const initialise = async (request: HttpRequest, res: ServerResponse, message: unknown): Promise<void> => {
    if (closing || !makeRoom()) {
      sendRpcError(res, 503, RPC.TRANSPORT, closing ? 'shutting down' : 'too many sessions', {
        'retry-after': '5',
      });
      return;
    }
    const id = randomUUID();
    const session = begin(id, request.management, false);
    try {
      await session.open(options.build(session));
      await session.answer(request, res, message);
    } catch (error) {
      await endSession(session);
      throw error;
    }
    if (res.statusCode >= 400) await endSession(session);
    else options.log.debug('mcp.connect', { session: id });
  };

  const post = async (request: HttpRequest, res: ServerResponse, body: Buffer): Promise<void> => {
    let message: unknown;
    try {
      message = JSON.parse(body.toString('utf8'));
    } catch {
      sendRpcError(res, 400, RPC.PARSE_ERROR, 'parse error: the body is not JSON');
      return;
    }
    if (request.headers['mcp-session-id'] === undefined) {
      if (isInitializeRequest(message)) {
        await initialise(request, res, message);
        return;
      }
      if (!Array.isArray(message) && !JSONRPCMessageSchema.safeParse(message).success) {
        sendRpcError(res, 400, RPC.INVALID_REQUEST, 'invalid request: the body is not a JSON-RPC message');
        return;
      }
    }
    await (await find(request, res))?.answer(request, res, message);
  };

  const get = async (request: HttpRequest, res: ServerResponse): Promise<void> => {
    if (!request.headers.accept?.includes('text/event-stream')) {
      sendRpcError(res, 406, RPC.TRANSPORT, 'the Accept header must allow text/event-stream');
      return;
    }
    const lastEventId = request.headers['last-event-id'];
    const session = await find(request, res);
    session?.openStream(res, typeof lastEventId === 'string' ? lastEventId : undefined);
  };

  const access = options.access ?? 'management';
  return {
    routes: [
      { method: 'POST', path: MCP_PATH, access, handle: post },
      { method: 'GET', path: MCP_PATH, access, handle: get },
      {
        method: 'DELETE',
        path: MCP_PATH,
        access,
        handle: async (request, res) => {
          await (await find(request, res))?.answer(request, res, undefined);
        },
      },
    ],
    get sessionCount() {
      return sessions.size;
    },
    close: async (budgetMs) => {
      closing = true;
      clearInterval(sweep);
      for (const session of sessions.values()) session.endStream();
      await waitUntil(() => ![...sessions.values()].some((session) => session.busy), budgetMs);
      await Promise.all([...sessions.values()].map(endSession));
    },
  };
}

async function waitUntil(done: () => boolean, budgetMs: number): Promise<void> {
  const end = performance.now() + budgetMs;
  while (!done() && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 10));
}
