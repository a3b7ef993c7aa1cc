import { readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Agent, fetch as undiciFetch } from 'undici';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';

/** How a verb reaches the management surface of an instance. */
export interface ManagementSource {
  /** Of the management surface; `/mcp` is added where there is no path. */
  readonly url: string;
  readonly bearer: string | null;
  readonly tls: { readonly ca: string | null; readonly cert: string | null; readonly key: string | null };
}

/** The longest one request may take, ms. */
export const CALL_MS = 10_000;
const CONNECT_MS = 5_000;

/**
 * The MCP endpoint behind the URL somebody gave.
 *
 * @throws AgentdError USAGE
 */
export function endpointOf(text: string): URL {
  try {
    const url = new URL(text);
    if (url.protocol !== 'http:' && url.protocol !== 'https:')
      throw new Error(`${url.protocol}// is not served`);
    if (url.pathname === '/') url.pathname = '/mcp';
    return url;
  } catch (error) {
    throw new AgentdError('USAGE', `cannot use ${JSON.stringify(text)} as --url: ${errorMessage(error)}`, {
      remedy: 'Give the URL of --serve-mcp, such as http://127.0.0.1:7420.',
    });
  }
}

/**
 * The sockets to one instance.
 *
 * @throws AgentdError USAGE when a PEM file cannot be read
 */
export function agentFor({ tls }: ManagementSource): Agent {
  const pem = (path: string | null): string | undefined => (path === null ? undefined : readPem(path));
  const [ca, cert, key] = [pem(tls.ca), pem(tls.cert), pem(tls.key)];
  return new Agent({
    headersTimeout: CALL_MS,
    bodyTimeout: 0,
    connect: {
      timeout: CONNECT_MS,
      ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    },
  });
}

/** The SDK's transport over those sockets, with the bearer token of the source. */
export function transportTo(
  endpoint: URL,
  source: ManagementSource,
  agent: Agent,
): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(endpoint, {
    requestInit: source.bearer === null ? {} : { headers: { authorization: `Bearer ${source.bearer}` } },
    // undici's own fetch: the global one takes no certificate authorities or client certificate.
    fetch: (url, init) =>
      undiciFetch(url, { ...(init as object), dispatcher: agent }) as unknown as Promise<Response>,
  });
}

/** Which of several instances something is from. */
export function labelOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}

function readPem(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new AgentdError('USAGE', `cannot read ${path}: ${errorMessage(error)}`, { cause: error });
  }
}
