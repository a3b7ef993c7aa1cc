import { readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import { Agent, fetch as undiciFetch } from 'undici';
import { AgentdError, errorMessage } from '../../../protocol/errors.ts';
import { AGENT_VERSION } from '../../../protocol/versions.ts';
import { whyNotRun } from '../../children/parent-death.ts';
import type { Config, McpServerConfig } from '../../config/config.ts';
import { readHeaderSecret } from '../../config/secret.ts';
import { DEFAULT_TIMINGS } from '../../mcp/connection-options.ts';
import { networkReason } from '../../mcp/http-client.ts';
import { openLink } from '../../mcp/open-link.ts';
import { toolsForStyle } from '../../mcp/required-tools.ts';
import { Session } from '../../mcp/session.ts';
import { systemClock } from '../../reactor/clock.ts';
import type { Log } from '../../telemetry/log.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

/** Whether the peers of a configuration answer. Each is asked once, within a bound. */

/** The longest one peer may take, ms. */
const PATIENCE_MS = 5_000;
/** A clock this far off breaks the validity of tokens and certificates, ms. */
const MOST_SKEW_MS = 30_000;

/** What servers write while they are asked is no finding. */
const silent: Log = {
  write: () => undefined,
  trace: () => undefined,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  as: () => silent,
};

/** Every MCP server, and whether a coordination server has what its routes need. */
export function checkServers(config: Config, patienceMs = PATIENCE_MS): Promise<Finding[]> {
  return Promise.all(config.mcpServers.map((server) => checkServer(config, server, patienceMs)));
}

async function checkServer(config: Config, server: McpServerConfig, patienceMs: number): Promise<Finding> {
  const check = `mcp ${server.name}`;
  const unreachable = (reason: string): Finding =>
    (server.required ? fail : warn)(
      check,
      `cannot be used: ${reason}`,
      server.transport.kind === 'http'
        ? 'Start the server, or correct its endpoint and headers under mcp.servers.'
        : 'Run its command by hand to see what it says, or correct it under mcp.servers.',
    );
  const { transport } = server;
  if (transport.kind === 'stdio') {
    const reason = whyNotRun(transport.command[0], process.env.PATH, transport.cwd ?? undefined);
    if (reason !== null) return unreachable(reason);
  }
  try {
    const nothing = (): void => undefined;
    const link = openLink(
      {
        config: server,
        instance: config.identity.instance,
        tlsCa: config.tlsCa,
        maxMessageBytes: DEFAULT_TIMINGS.maxMessageBytes,
        connectTimeoutMs: patienceMs,
        clock: systemClock,
        log: silent,
      },
      { heard: nothing, suspect: nothing, broken: nothing, gap: nothing },
    );
    try {
      const events = { updated: nothing, resourcesChanged: nothing, toolsChanged: nothing };
      const client = { name: 'agentd-doctor', version: AGENT_VERSION };
      const session = await Session.open(server.name, client, link, events, patienceMs);
      const tools = await session.listTools({ timeoutMs: patienceMs });
      return judged(config, server, session.deaf, new Set(tools.map(({ name }) => name)));
    } finally {
      await link.close(1_000, true);
    }
  } catch (error) {
    return unreachable(error instanceof AgentdError ? error.message : networkReason(error));
  }
}

function judged(
  config: Config,
  { name }: McpServerConfig,
  deaf: string | null,
  tools: ReadonlySet<string>,
): Finding {
  const check = `mcp ${name}`;
  const claims = config.routes.flatMap(({ claim }) => (claim?.server === name ? [claim.style] : []));
  const missing = [...new Set(claims.flatMap(toolsForStyle))].filter((tool) => !tools.has(tool));
  if (missing.length > 0) {
    return fail(
      check,
      `a route claims its items there, but it does not list ${missing.join(', ')}`,
      'Name a coordination server, such as one started with `agentd coordinate`.',
    );
  }
  const watched = config.subscriptions.some(({ server }) => server === name);
  if (deaf !== null && watched) {
    return fail(
      check,
      `resources of it are watched, but ${deaf}`,
      'Watch resources of a server that offers subscriptions.',
    );
  }
  return ok(check, `answers, ${tools.size} tools${claims.length > 0 ? ', grants leases' : ''}`);
}

/** Every model endpoint, and how far our clock is from theirs. */
export async function checkEndpoints(
  config: Config,
  env: NodeJS.ProcessEnv,
  patienceMs = PATIENCE_MS,
): Promise<Finding[]> {
  const { endpoints } = config.intelligence;
  if (endpoints.length === 0) {
    return [
      fail('model', 'no endpoint is configured', 'Give --intelligence URL, or set AGENT_INTELLIGENCE.'),
    ];
  }
  const results = await Promise.all(
    endpoints.map(({ url, token }, at) => {
      const check = endpoints.length === 1 ? 'model' : `model ${at + 1}`;
      try {
        if (token !== null) readHeaderSecret(token, env);
      } catch (error) {
        const remedy = error instanceof AgentdError ? error.remedy : 'Check the token.';
        return { finding: fail(check, errorMessage(error), remedy), skewMs: null };
      }
      if (url.startsWith('script:')) {
        const finding = ok(check, 'a playbook is played instead of a model');
        return { finding, skewMs: null };
      }
      return checkEndpoint(check, url, config.tlsCa, endpoints.length > 1, patienceMs);
    }),
  );
  const skew = results.map(({ skewMs }) => skewMs).find((ms) => ms !== null && Math.abs(ms) > MOST_SKEW_MS);
  return [
    ...results.map(({ finding }) => finding),
    ...(skew === undefined || skew === null
      ? []
      : [
          warn(
            'clock',
            `it is ${Math.round(Math.abs(skew) / 1_000)} s ${skew > 0 ? 'ahead of' : 'behind'} that of a model endpoint`,
            'Synchronise it (timedatectl set-ntp true).',
          ),
        ]),
  ];
}

/** Any answer will do: what is asked for needs no credential and costs nothing. */
async function checkEndpoint(
  check: string,
  url: string,
  tlsCa: string | null,
  spare: boolean,
  patienceMs: number,
): Promise<{ readonly finding: Finding; readonly skewMs: number | null }> {
  // Never the address itself: it may be confidential and it may hold a credential.
  const agent = new Agent({
    connect: {
      timeout: patienceMs,
      ...(tlsCa === null ? {} : { ca: [...rootCertificates, readFileSync(tlsCa, 'utf8')] }),
    },
  });
  try {
    const answer = await undiciFetch(url, {
      method: 'HEAD',
      dispatcher: agent,
      redirect: 'manual',
      signal: AbortSignal.timeout(patienceMs),
    });
    const theirs = Date.parse(answer.headers.get('date') ?? '');
    const skewMs = Number.isNaN(theirs) ? null : Date.now() - theirs;
    return { finding: ok(check, `reachable (HTTP ${answer.status})`), skewMs };
  } catch (error) {
    const reason =
      error instanceof Error && error.name === 'TimeoutError'
        ? `no answer within ${patienceMs / 1_000} s`
        : networkReason(error);
    const finding = (spare ? warn : fail)(
      check,
      `cannot be reached: ${reason}`,
      'Check the URL of --intelligence, the network, and --tls-ca for a private certificate authority.',
    );
    return { finding, skewMs: null };
  } finally {
    await agent.destroy();
  }
}
