import { readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { Agent, fetch as undiciFetch } from 'undici';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import { AGENT_VERSION } from '../../protocol/versions.ts';
import { readHeaderSecret } from '../config/secret.ts';

/** How to reach a coordination server from the command line. */
export interface WorkCallerOptions {
  readonly url: string;
  readonly bearerFile: string | null;
  /** Extra certificate authorities, PEM. */
  readonly tlsCa: string | null;
  /** Client certificate and key, PEM. */
  readonly tlsCert: string | null;
  readonly tlsKey: string | null;
}

/** Longest a call may take, ms. */
const CALL_MS = 15_000;

/** A short-lived connection for a person at a terminal; supervisors use their own. */
export class WorkCaller {
  private constructor(
    private readonly url: string,
    private readonly client: Client,
    private readonly agent: Agent,
  ) {}

  /** @throws AgentdError MCP_UNAVAILABLE (exit 6), USAGE, SECRET_UNREADABLE, SECRET_UNUSABLE or TLS_UNUSABLE */
  static async connect(options: WorkCallerOptions): Promise<WorkCaller> {
    const url = endpointOf(options.url);
    const agent = agentFor(options);
    const token =
      options.bearerFile === null ? null : readHeaderSecret({ secret: 'file', path: options.bearerFile });
    const transport = new StreamableHTTPClientTransport(url, {
      fetch: async (target, init) => {
        const headers = new Headers(init?.headers);
        if (token !== null) headers.set('authorization', `Bearer ${token}`);
        const response: unknown = await undiciFetch(target, {
          method: init?.method ?? 'GET',
          headers: Object.fromEntries(headers),
          body: typeof init?.body === 'string' ? init.body : null,
          signal: init?.signal ?? null,
          dispatcher: agent,
        });
        // undici's own Response and the global one are the same interface under two names.
        return response as Response;
      },
    });
    const client = new Client({ name: 'agentd-work', version: AGENT_VERSION });
    try {
      // The SDK declares an optional session id where its interface has a plain one.
      await client.connect(transport as Parameters<Client['connect']>[0], { timeout: CALL_MS });
    } catch (error) {
      await agent.destroy();
      throw new AgentdError('MCP_UNAVAILABLE', `cannot reach ${url.href}: ${reasonOf(error)}`, {
        cause: error,
        exitCode: 6,
        remedy:
          'Start `agentd coordinate`, or give --url (or AGENT_COORDINATE_URL) the address it listens at; nothing is tried again.',
      });
    }
    return new WorkCaller(url.href, client, agent);
  }

  /**
   * Calls a work tool and returns its structured result.
   *
   * @throws AgentdError MCP_UNAVAILABLE (exit 6), or MCP_PROTOCOL with what the server says or that it is another kind
   */
  async call(tool: string, args: Record<string, unknown>): Promise<Record<string, unknown>> {
    let answer: unknown;
    try {
      answer = await this.client.callTool({ name: tool, arguments: args }, undefined, { timeout: CALL_MS });
    } catch (error) {
      await this.refuseStranger(tool, error);
      throw new AgentdError('MCP_UNAVAILABLE', `${this.url} did not answer ${tool}: ${reasonOf(error)}`, {
        cause: error,
        exitCode: 6,
        remedy:
          'Check that the server at --url still runs, then give the command again; nothing is tried again.',
      });
    }
    const result = CallToolResultSchema.safeParse(answer);
    if (!result.success)
      throw new AgentdError('MCP_PROTOCOL', `${this.url} answered ${tool} with no tool result`);
    const { isError, content, structuredContent } = result.data;
    if (isError === true) {
      await this.refuseStranger(tool, answer);
      const said = content.map((part) => (part.type === 'text' ? part.text : '')).join(' ');
      throw new AgentdError('MCP_PROTOCOL', said, {
        remedy: `This is what ${this.url} answered to ${tool}.`,
      });
    }
    if (structuredContent === undefined) {
      throw new AgentdError('MCP_PROTOCOL', `${this.url} answered ${tool} without structured content`);
    }
    return structuredContent;
  }

  /**
   * Asked after a failure only: whether the server has the tool at all.
   *
   * @throws AgentdError MCP_PROTOCOL when it is another kind of server
   */
  private async refuseStranger(tool: string, cause: unknown): Promise<void> {
    const listed = await this.client.listTools({}, { timeout: CALL_MS }).catch(() => null);
    if (listed === null || listed.tools.some(({ name }) => name === tool)) return;
    throw new AgentdError('MCP_PROTOCOL', `${this.url} is no coordination server: it has no tool ${tool}`, {
      cause,
      remedy: 'Give --url (or AGENT_COORDINATE_URL) the address that `agentd coordinate` listens at.',
    });
  }

  async close(): Promise<void> {
    await this.client.close();
    await this.agent.destroy();
  }
}

/** Adds the path of the endpoint where only an origin is given. */
function endpointOf(text: string): URL {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new AgentdError('USAGE', `--url "${text}" is not a URL`, {
      remedy: 'Write it as http://127.0.0.1:PORT/mcp.',
    });
  }
  if (url.pathname === '/') url.pathname = '/mcp';
  return url;
}

function agentFor({ tlsCa, tlsCert, tlsKey }: WorkCallerOptions): Agent {
  if ((tlsCert === null) !== (tlsKey === null))
    throw new AgentdError('USAGE', '--tls-cert and --tls-key go together');
  return new Agent({
    connect: {
      timeout: CALL_MS,
      ...(tlsCa === null ? {} : { ca: [...rootCertificates, pem(tlsCa)] }),
      ...(tlsCert === null || tlsKey === null ? {} : { cert: pem(tlsCert), key: pem(tlsKey) }),
    },
  });
}

function pem(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new AgentdError('TLS_UNUSABLE', `cannot read ${path}: ${errorMessage(error)}`, { cause: error });
  }
}

/** The innermost reason: `connect ECONNREFUSED …`, not `fetch failed`. */
function reasonOf(error: unknown): string {
  let inner = error;
  while (inner instanceof Error && inner.cause instanceof Error) inner = inner.cause;
  return errorMessage(inner);
}
