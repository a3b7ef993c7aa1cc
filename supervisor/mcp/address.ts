import type { McpServerConfig } from '../config/config.ts';

/**
 * Where a server is, for messages and logs: a URL without credentials, query and fragment, or the
 * program of a stdio server without its arguments, any of which may hold a secret (invariant 9).
 */
export function serverAddress(transport: McpServerConfig['transport']): string {
  if (transport.kind === 'stdio') return transport.command[0];
  const url = new URL(transport.url);
  return `${url.protocol}//${url.host}${url.pathname}`;
}
