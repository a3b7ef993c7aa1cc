import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { isLoopback } from '../surface/listen-url.ts';
import type { IntelligenceConfig, McpServerConfig } from './config.ts';
import { type ResolveContext, refuse } from './context.ts';
import { headerProblem, isHeaderName } from './header-text.ts';
import { quoted } from './problems.ts';
import type { ConfigDocument, ServerDocument } from './schema.ts';
import type { SecretRef } from './secret.ts';
import { type ServerTags, ShorthandError, splitCommand } from './shorthand.ts';
import type { TreePath } from './tree.ts';

/** From documents to the peers of the supervisor: MCP servers and model endpoints. */

/** What a mention of a server rests on. */
export const SERVER_NAMES = ['mcp', 'servers', '*', 'name'] as const;

const TAGS: readonly string[] = ['untrusted_input', 'sensitive', 'egress'];

export function resolveServers(
  documents: readonly ServerDocument[],
  tagFlags: readonly ServerTags[],
  context: ResolveContext,
): McpServerConfig[] {
  const servers: McpServerConfig[] = [];
  for (const [at, document] of documents.entries()) {
    const path = ['mcp', 'servers', at];
    if (servers.some(({ name }) => name === document.name)) {
      refuse(context, [...path, 'name'], `two MCP servers are named ${document.name}`);
    }
    const transport = transportOf(document, path, context);
    if (transport === null) {
      context.problems.doubt(context.written([...path, 'endpoint']));
      continue;
    }
    servers.push({
      name: document.name,
      transport,
      tags: [...new Set(document.tags)],
      required: document.required,
      timeoutMs: document.timeout,
    });
  }
  const names = documents.map(({ name }) => name);
  return addTags(servers, names, tagFlags, context);
}

function transportOf(
  document: ServerDocument,
  path: TreePath,
  context: ResolveContext,
): McpServerConfig['transport'] | null {
  const { name, endpoint } = document;
  if ((endpoint === undefined) === (document.command === undefined)) {
    refuse(context, path, `MCP server ${name} needs either an endpoint or a command`, {
      needs: [
        [...path, 'endpoint'],
        [...path, 'command'],
      ],
    });
    return null;
  }
  if (endpoint === undefined || endpoint.startsWith('stdio:')) return stdioTransport(document, path, context);
  if (!checkUrl(endpoint, [...path, 'endpoint'], `MCP server ${name}`, context)) return null;
  for (const key of ['env', 'cwd'] as const) {
    if (document[key] === undefined || (key === 'env' && Object.keys(document.env).length === 0)) continue;
    refuse(context, [...path, key], `MCP server ${name} has an http endpoint, so ${key} has no meaning`);
  }
  for (const [header, value] of Object.entries(document.headers)) {
    const problem = isHeaderName(header)
      ? typeof value === 'string' && value !== '' && headerProblem(value)
      : 'is no name of a header';
    if (!problem) continue;
    const shown = header.replaceAll(/[^\x20-\x7e]/g, '?');
    refuse(context, [...path, 'headers'], `header ${quoted(shown)} of MCP server ${name} ${problem}`);
  }
  return { kind: 'http', url: endpoint, headers: document.headers };
}

function stdioTransport(
  document: ServerDocument,
  path: TreePath,
  context: ResolveContext,
): McpServerConfig['transport'] | null {
  const { name } = document;
  if (Object.keys(document.headers).length > 0) {
    refuse(context, [...path, 'headers'], `MCP server ${name} is a command, so headers have no meaning`);
  }
  try {
    const [program, ...args] =
      document.command ?? splitCommand((document.endpoint ?? '').slice('stdio:'.length));
    if (program === undefined || program === '') throw new ShorthandError('it names no program');
    const cwd = document.cwd === undefined ? null : resolve(context.cwd, document.cwd);
    return { kind: 'stdio', command: [program, ...args], env: document.env, cwd };
  } catch (error) {
    if (!(error instanceof ShorthandError)) throw error;
    refuse(context, path, `MCP server ${name} cannot be started: ${error.message}`, {
      needs: [
        [...path, 'endpoint'],
        [...path, 'command'],
      ],
    });
    return null;
  }
}

function addTags(
  servers: readonly McpServerConfig[],
  names: readonly string[],
  tagFlags: readonly ServerTags[],
  context: ResolveContext,
): McpServerConfig[] {
  const added = new Map<string, readonly string[]>();
  const flag = { code: 'USAGE', where: '--mcp-tags' } as const;
  for (const { name, tags } of tagFlags) {
    if (!names.includes(name)) {
      refuse(context, [], `no MCP server is named ${name}`, { ...flag, needs: [SERVER_NAMES] });
    }
    for (const tag of tags) {
      if (!TAGS.includes(tag)) refuse(context, [], `${quoted(tag)} is not one of ${TAGS.join(', ')}`, flag);
    }
    added.set(name, [...(added.get(name) ?? []), ...tags]);
  }
  return servers.map((server) => ({
    ...server,
    tags: [...new Set([...server.tags, ...(added.get(server.name) ?? [])])],
  }));
}

const ENDPOINTS = ['intelligence', 'endpoints'] as const;

export function resolveIntelligence(
  document: ConfigDocument['intelligence'],
  standby: ConfigDocument['standby'],
  context: ResolveContext,
): IntelligenceConfig {
  const numbered = numberedTokens(context, document.endpoints.length);
  const endpoints = document.endpoints.map((endpoint, at) => {
    const path = ['intelligence', 'endpoints', at];
    const { url, token } = typeof endpoint === 'string' ? { url: endpoint, token: undefined } : endpoint;
    return {
      url: endpointUrl(url, path, context),
      token: numbered.get(at) ?? token ?? document.token ?? null,
    };
  });
  const [first] = endpoints;
  if (first === undefined && context.purpose !== 'describe') {
    refuse(context, [], 'no model endpoint is configured', {
      needs: [ENDPOINTS],
      remedy: 'Give --intelligence URL (or AGENT_INTELLIGENCE); script:final needs no model at all.',
    });
  }
  if (document.model === undefined && endpoints.some(({ url }) => !url.startsWith('script:'))) {
    context.warnings.push('no model is named (--model); the endpoint has to have a default');
  }
  return {
    endpoints,
    model: document.model ?? null,
    timeoutMs: document.timeout,
    maxAttempts: document.max_attempts,
    holdConnection: standby.warm_intelligence ?? standby.enabled,
  };
}

/** A script file is found from where the supervisor runs; a child may run elsewhere. */
function endpointUrl(url: string, path: TreePath, context: ResolveContext): string {
  if (!url.startsWith('script:')) {
    checkUrl(url, path, 'the model endpoint', context);
    return url;
  }
  const script = url.slice('script:'.length);
  if (script === 'final' || script.startsWith('final:')) return url;
  const file = resolve(context.cwd, script);
  const found = statSync(file, { throwIfNoEntry: false });
  if (found?.isFile() !== true) {
    const problem = found === undefined ? 'does not exist' : 'is no regular file';
    refuse(context, path, `the model script ${JSON.stringify(script)} ${problem}`, {
      remedy: `Put a playbook at ${file}, or correct the path after script: in ${context.where(path) ?? ENDPOINTS.join('.')}; script:final needs no file.`,
    });
  }
  return `script:${file}`;
}

const NUMBERED = /^AGENT_INTELLIGENCE_TOKEN_([1-9]\d*)(_FILE)?$/;

/** AGENT_INTELLIGENCE_TOKEN_N[_FILE]: the credential of endpoint N, counted from 1. */
function numberedTokens(context: ResolveContext, endpoints: number): Map<number, SecretRef> {
  const tokens = new Map<number, SecretRef>();
  for (const [name, value = ''] of Object.entries(context.env)) {
    const found = NUMBERED.exec(name);
    if (found === null || value === '') continue;
    const at = Number(found[1]) - 1;
    if (tokens.has(at)) refuse(context, [], `endpoint ${at + 1} has two credentials`, { where: name });
    if (at >= endpoints) {
      const message = `there is no endpoint number ${at + 1}; ${endpoints} configured`;
      refuse(context, [], message, { where: name, needs: [ENDPOINTS] });
    }
    tokens.set(
      at,
      found[2] === undefined
        ? { secret: 'env', name }
        : { secret: 'file', path: resolve(context.cwd, value) },
    );
  }
  return tokens;
}

/** https anywhere, http on loopback only, no credentials in the address. Records what is wrong. */
export function checkUrl(text: string, path: TreePath, what: string, context: ResolveContext): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    const known = what.startsWith('MCP')
      ? 'https://, http:// on loopback or stdio:'
      : 'https://, http:// on loopback or script:';
    refuse(context, path, `${what} has an address that is not a URL of ${known}`);
    return false;
  }
  if (url.username !== '' || url.password !== '') {
    // Not echoed: the text holds a credential (invariant 9).
    refuse(context, path, `${what} has an address that carries a user name or password`, {
      remedy: 'Use a secret reference in a header or token instead.',
    });
    return false;
  }
  if (url.protocol === 'http:' && !isLoopback(url.hostname.replace(/^\[(.*)\]$/, '$1'))) {
    refuse(context, path, `${what} is at ${url.origin}: http:// is only allowed on loopback`, {
      remedy: 'Use https://, or run the peer on this machine.',
    });
    return false;
  }
  return true;
}
