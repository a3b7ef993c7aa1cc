import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import { STREAM_BROKE } from './http-transport.ts';

/** What a failed request was, for its message. */
export interface RequestName {
  /** `tool x`, `ping`, … */
  readonly what: string;
  readonly server: string;
  /** Why the other side went away, where the transport knows. */
  readonly epitaph: string | null;
}

/** Words of a peer that are quoted, characters. */
const QUOTED = 400;

/** Any failure of a request, as one of the product's errors. */
export function requestFailure(name: RequestName, error: unknown): AgentdError {
  if (error instanceof AgentdError) return error;
  const named = `${name.what} on MCP server ${name.server}`;
  if (error instanceof McpError) {
    // Only the SDK's own timeout carries its length: a server may use the code for anything.
    if (error.code === ErrorCode.RequestTimeout && hasTimeout(error.data)) {
      const ms = error.data.timeout;
      return new AgentdError('MCP_TIMEOUT', `${named} brought neither answer nor progress in ${ms} ms`, {
        cause: error,
      });
    }
    const closed = error.code === ErrorCode.ConnectionClosed && error.message.endsWith('Connection closed');
    if (closed || error.code === STREAM_BROKE) {
      return unavailable(named, name.epitaph ?? bare(error), error);
    }
    const text = `${named} was answered with error ${error.code}: ${bare(error)}`;
    return new AgentdError('MCP_PROTOCOL', text, { cause: error });
  }
  if (error instanceof Error && 'issues' in error) {
    const text = `${named} was answered with something that is no valid result`;
    return new AgentdError('MCP_PROTOCOL', text, { cause: error });
  }
  if (error instanceof StreamableHTTPError && (error.code === 401 || error.code === 403)) {
    const text = `${named} was refused with status ${error.code}`;
    return new AgentdError('MCP_UNAUTHORIZED', text, { cause: error, exitCode: 6 });
  }
  return unavailable(named, name.epitaph ?? errorMessage(error), error);
}

/** The answer is valid by its schema, but cannot be used. */
export function unusable(name: RequestName, reason: string): AgentdError {
  return new AgentdError('MCP_PROTOCOL', `${name.what} of MCP server ${name.server} is unusable: ${reason}`);
}

export function cancelled(name: RequestName): AgentdError {
  const text = `${name.what} on MCP server ${name.server} was given up by its caller`;
  return new AgentdError('MCP_CANCELLED', text);
}

function unavailable(named: string, reason: string, cause: unknown): AgentdError {
  return new AgentdError('MCP_UNAVAILABLE', `${named} failed: ${reason.slice(0, QUOTED)}`, {
    cause,
    exitCode: 6,
  });
}

function hasTimeout(data: unknown): data is { timeout: number } {
  return typeof data === 'object' && data !== null && 'timeout' in data && typeof data.timeout === 'number';
}

/** The server's own words, without the SDK's `MCP error -32000: ` in front (once per hop). */
function bare(error: McpError): string {
  return error.message.replace(/^(MCP error -?\d+: )+/, '').slice(0, QUOTED);
}
