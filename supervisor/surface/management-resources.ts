import type { ReadResourceResult, Resource, ResourceTemplate } from '@modelcontextprotocol/sdk/types.js';
import { eventsQuery } from '../telemetry/event-ring.ts';
import { RPC } from './http-reply.ts';
import type { ManagementPort } from './management-port.ts';
import { RpcError } from './rpc-error.ts';

const SCHEME = 'agent://';
const JSON_TYPE = 'application/json';

interface StaticResource {
  readonly name: string;
  readonly description: string;
  readonly mimeType: string;
  /** Its text, or null when this instance does not serve it. */
  read(port: ManagementPort, query: URLSearchParams): string | null | Promise<string>;
}

const json = (value: unknown): string | null => (value === null ? null : JSON.stringify(value));

const STATIC: readonly StaticResource[] = [
  {
    name: 'capabilities',
    description: 'What this build and configuration serve; the same as `agentd --capabilities`.',
    mimeType: JSON_TYPE,
    read: (port) => json(port.capabilities()),
  },
  {
    name: 'status',
    description: 'Phase, readiness with its reasons, and the figures of the moment.',
    mimeType: JSON_TYPE,
    read: (port) => json(port.status()),
  },
  {
    name: 'inventory',
    description: 'Running subagents, sessions, routes and MCP servers.',
    mimeType: JSON_TYPE,
    read: (port) => json(port.inventory()),
  },
  {
    name: 'capacity',
    description: 'How much more this instance could take.',
    mimeType: JSON_TYPE,
    read: (port) => json(port.capacity()),
  },
  {
    name: 'intelligence',
    description: 'Health of the model endpoints, by number.',
    mimeType: JSON_TYPE,
    read: (port) => json(port.intelligence()),
  },
  {
    name: 'metrics',
    description: 'The same as /metrics.',
    mimeType: 'text/plain; version=0.0.4; charset=utf-8',
    read: (port) => port.metrics(),
  },
  {
    name: 'events',
    description: 'Recent log lines: ?after=<seq>&level=<min>&event=<prefix,prefix>.',
    mimeType: JSON_TYPE,
    read: (port, query) => json(port.events(eventsQuery(query))),
  },
  {
    name: 'config/effective',
    description: 'The configuration in force; secrets as the references they are.',
    mimeType: JSON_TYPE,
    read: (port) => json(port.effectiveConfig()),
  },
];

const TEMPLATES: readonly ResourceTemplate[] = [
  {
    name: 'run',
    uriTemplate: `${SCHEME}run/{run_id}`,
    mimeType: JSON_TYPE,
    description: 'Report of a finished run.',
  },
  {
    name: 'session',
    uriTemplate: `${SCHEME}session/{id}`,
    mimeType: JSON_TYPE,
    description: 'A warm session.',
  },
  {
    name: 'subagent',
    uriTemplate: `${SCHEME}subagent/{handle}`,
    mimeType: JSON_TYPE,
    description: 'A subagent.',
  },
  {
    name: 'result',
    uriTemplate: `${SCHEME}subagent/{handle}/result`,
    mimeType: JSON_TYPE,
    description: 'What a finished subagent came to.',
  },
];

/** The resources every instance has, as `resources/list` shows them. */
export function managementResourceList(port: ManagementPort): Resource[] {
  const hidden = port.events({ after: Number.MAX_SAFE_INTEGER }) === null;
  return STATIC.filter(({ name }) => !(hidden && name === 'events')).map(
    ({ name, description, mimeType }) => ({
      uri: SCHEME + name,
      name,
      description,
      mimeType,
    }),
  );
}

export function managementTemplates(): ResourceTemplate[] {
  return [...TEMPLATES];
}

/**
 * Reads a resource.
 *
 * @throws RpcError -32002 for one that does not exist
 */
export async function readManagementResource(port: ManagementPort, uri: string): Promise<ReadResourceResult> {
  const found = locate(uri);
  const text = found === null ? null : await found.read(port);
  if (found === null || text === null)
    throw new RpcError(RPC.RESOURCE_NOT_FOUND, `there is no resource ${uri}`);
  return { contents: [{ uri, mimeType: found.mimeType, text }] };
}

/**
 * The URI a subscription is kept under. One may subscribe to a run, session or subagent before it
 * exists.
 *
 * @throws RpcError -32002 for what can never be a resource here
 */
export function subscribableUri(port: ManagementPort, uri: string): string {
  const found = locate(uri);
  const served =
    found !== null && (found.name !== 'events' || port.events({ after: Number.MAX_SAFE_INTEGER }) !== null);
  if (!served || uri.includes('?')) {
    throw new RpcError(RPC.RESOURCE_NOT_FOUND, `there is no resource ${uri} to subscribe to`);
  }
  return uri;
}

interface Located {
  readonly name: string;
  readonly mimeType: string;
  read(port: ManagementPort): string | null | Promise<string>;
}

function locate(uri: string): Located | null {
  if (!uri.startsWith(SCHEME)) return null;
  const [path = '', ...rest] = uri.slice(SCHEME.length).split('?');
  const known = STATIC.find(({ name }) => name === path);
  if (known !== undefined) {
    const query = new URLSearchParams(rest.join('?'));
    return { name: known.name, mimeType: known.mimeType, read: (port) => known.read(port, query) };
  }
  const match = /^(run|session|subagent)\/([^/]+)(\/result)?$/.exec(path);
  const id = match === null ? null : decode(match[2] ?? '');
  if (match === null || id === null || rest.length > 0) return null;
  const [, kind, , result] = match;
  if (result !== undefined && kind !== 'subagent') return null;
  return {
    name: kind ?? '',
    mimeType: JSON_TYPE,
    read: (port) => json(dynamic(port, kind ?? '', id, result !== undefined)),
  };
}

function dynamic(port: ManagementPort, kind: string, id: string, result: boolean): unknown {
  if (kind === 'run') return port.run(id);
  if (kind === 'session') return port.session(id);
  return result ? port.result(id) : port.subagent(id);
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
