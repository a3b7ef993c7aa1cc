import type { ServerResponse } from 'node:http';

/** JSON-RPC codes used on the wire beside those of the MCP SDK. */
export const RPC = {
  PARSE_ERROR: -32700,
  INVALID_REQUEST: -32600,
  METHOD_NOT_FOUND: -32601,
  INVALID_PARAMS: -32602,
  INTERNAL: -32603,
  /** Anything about the HTTP exchange rather than the call in it. */
  TRANSPORT: -32000,
  SESSION_NOT_FOUND: -32001,
  RESOURCE_NOT_FOUND: -32002,
} as const;

/** Sends a JSON body and ends the response. Does nothing when the response has begun. */
export function sendJson(
  res: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (res.headersSent || res.destroyed) return;
  const text = JSON.stringify(body);
  res.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    ...headers,
  });
  res.end(text);
}

/** Sends a JSON-RPC error that belongs to no request id, with the HTTP status that says the same. */
export function sendRpcError(
  res: ServerResponse,
  status: number,
  code: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  sendJson(res, status, { jsonrpc: '2.0', error: { code, message }, id: null }, headers);
}
