/**
 * A JSON-RPC error with exactly this code, message and data on the wire. The SDK's own McpError
 * writes its code into the message as well, once on each side.
 */
export class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message);
    this.name = 'RpcError';
  }
}
