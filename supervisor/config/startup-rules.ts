import { accessSync, constants } from 'node:fs';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import { parseListenUrl } from '../surface/listen-url.ts';
import { parseTraceparent } from '../telemetry/trace.ts';
import type { Config } from './config.ts';
import { type ResolveContext, refuse } from './context.ts';
import { formatDuration } from './quantities.ts';
import { formatSecret, readHeaderSecret, readSecret, type SecretRef } from './secret.ts';

/** The refusals of contract section 8 that concern several keys at once and need no connection. */

/** With no grace known, more than this may be cut off by the platform's usual 30 s. */
const USUAL_GRACE_MS = 30_000;

export async function checkStartup(config: Config, context: ResolveContext): Promise<void> {
  checkMode(config, context);
  checkInstructions(config, context);
  checkDrain(config, context);
  checkShards(config, context);
  checkObservability(config, context);
  if (config.traceparent !== null && parseTraceparent(config.traceparent) === null) {
    context.warnings.push('the traceparent is not a valid W3C one and is ignored; a new trace begins');
  }
  if (config.tlsCa !== null) checkReadable(config.tlsCa, context);
  if (config.serve !== null) checkListen(config.serve.url, context);
  checkSecrets(config, context);
  await checkClock(config, context);
}

function checkMode(config: Config, context: ResolveContext): void {
  const { mode, standby, routes, schedule } = config;
  if (standby !== null && mode !== 'reactive') {
    refuse(context, ['standby', 'enabled'], `standby is for reactive mode, and the mode is ${mode}`, {
      needs: [['standby', 'enabled'], ['mode']],
    });
  }
  if (context.purpose === 'describe') return;
  if (mode === 'reactive' && routes.length === 0 && standby === null && schedule === null) {
    refuse(context, ['mode'], 'reactive mode has nothing to react to', {
      needs: [['mode'], ['routes'], ['subscribe'], ['standby'], ['schedule']],
      remedy:
        'Give a --subscribe or --route (and the --mcp server it comes from), an interval, or another --mode.',
    });
  }
  if (mode === 'reactive' && routes.length > 0 && config.mcpServers.length === 0) {
    refuse(context, ['mode'], 'no MCP server is declared, so nothing can be subscribed to', {
      needs: [['mode'], ['mcp', 'servers']],
      remedy: 'Declare the source with --mcp NAME=ENDPOINT.',
    });
  }
  if (mode === 'schedule' && schedule === null) {
    refuse(context, ['mode'], 'schedule mode has no clock', {
      needs: [['mode'], ['schedule']],
      remedy: 'Give --interval DURATION or --cron FIELDS.',
    });
  }
}

/** Every run needs something to do. */
function checkInstructions(config: Config, context: ResolveContext): void {
  if (config.instruction !== null || context.purpose === 'describe') return;
  const remedy = 'Give --instruction TEXT or --instruction-file PATH (or AGENT_INSTRUCTION).';
  const needs = [['mode'], ['schedule'], ['agent', 'instruction'], ['agent', 'instruction_file']];
  const bare = config.routes.find((route) => route.instruction === null);
  if (config.mode !== 'reactive' || config.schedule !== null) {
    refuse(context, [], `${config.mode} mode has no instruction`, { needs, remedy });
  } else if (bare !== undefined) {
    refuse(context, [], `route ${bare.name} has no instruction, and neither has the agent`, {
      needs: [...needs, ['routes']],
      remedy,
    });
  }
}

function checkDrain({ lifecycle }: Config, context: ResolveContext): void {
  const { drainTimeoutMs, podGraceMs } = lifecycle;
  const drain = formatDuration(drainTimeoutMs);
  if (podGraceMs !== null && drainTimeoutMs >= podGraceMs) {
    refuse(
      context,
      ['lifecycle', 'drain_timeout'],
      `the drain may take ${drain}, but the platform kills after ${formatDuration(podGraceMs)}`,
      {
        needs: [
          ['lifecycle', 'drain_timeout'],
          ['lifecycle', 'pod_grace'],
        ],
        remedy: 'Make drain-timeout shorter than the pod grace.',
      },
    );
  } else if (podGraceMs === null && drainTimeoutMs >= USUAL_GRACE_MS) {
    context.warnings.push(
      `the drain may take ${drain}, and the platform's grace is not known (--pod-grace); 30s is usual`,
    );
  }
}

/** A session lives in one replica; by bare URI the turns of one session are spread over all of them. */
function checkShards({ shard, routes }: Config, context: ResolveContext): void {
  if (shard.count === 1) return;
  for (const { name, disposition, shardKey } of routes) {
    if (disposition.kind !== 'continue' || shardKey.kind !== 'uri') continue;
    context.warnings.push(
      `route ${name} continues the session ${disposition.session}, but its updates are sharded by URI: each of ${shard.count} replicas gets a session of its own; give it a shard_key that the updates of one session share`,
    );
  }
}

function checkObservability({ mode, observability }: Config, context: ResolveContext): void {
  const { metricsAddr, reportFile } = observability;
  const port = metricsAddr === null ? null : /^(?:\[[0-9a-f:.]+\]|[^\s:[\]]*):(\d{1,5})$/i.exec(metricsAddr);
  if (metricsAddr !== null && (port === null || Number(port[1]) > 65_535)) {
    refuse(
      context,
      ['observability', 'metrics_addr'],
      `the metrics address ${JSON.stringify(metricsAddr)} is not HOST:PORT`,
    );
  }
  if (reportFile !== null && mode === 'reactive') {
    context.warnings.push('no run report is written in reactive mode; report_file has no effect');
  }
}

async function checkClock({ mode, schedule }: Config, context: ResolveContext): Promise<void> {
  if (schedule === null) return;
  const { cron, intervalMs } = schedule;
  if (cron !== null && intervalMs !== null) {
    refuse(context, ['schedule', 'interval'], 'both an interval and a cron are given; give one of them');
  }
  if (mode === 'once') context.warnings.push('an interval or cron has no effect in once mode');
  if (cron === null) return;
  const path = ['schedule', 'cron'];
  if (cron.trim().split(/\s+/).length !== 5) {
    refuse(
      context,
      path,
      `the cron ${JSON.stringify(cron)} does not have five fields: minute hour day month weekday`,
    );
    return;
  }
  const { Cron } = await import('croner');
  try {
    const next = new Cron(cron, { paused: true, timezone: 'UTC' }).nextRun();
    if (next === null) refuse(context, path, `the cron ${JSON.stringify(cron)} never fires`);
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error);
    refuse(context, path, `the cron ${JSON.stringify(cron)} cannot be read: ${reason}`);
  }
}

function checkListen(url: string, context: ResolveContext): void {
  try {
    parseListenUrl(url);
  } catch (error) {
    report(error, context.where(['serve', 'mcp']), context);
  }
}

/** A secret that is not there, or cannot be sent, is found now, not in the first run that needs it. */
function checkSecrets(config: Config, context: ResolveContext): void {
  const { sent, handedOn } = secretsOf(config);
  for (const read of [
    ...sent.map((ref) => () => readHeaderSecret(ref, context.env)),
    ...handedOn.map((ref) => () => readSecret(ref, context.env)),
  ]) {
    try {
      read();
    } catch (error) {
      if (context.purpose === 'run') report(error, null, context);
      else if (context.purpose === 'validate') context.warnings.push(errorMessage(error));
    }
  }
}

/** Every secret once: `sent` in headers, or `handedOn` to a program. */
function secretsOf({ intelligence, mcpServers, serve }: Config): Record<'sent' | 'handedOn', SecretRef[]> {
  const headers = mcpServers.flatMap(({ transport }) =>
    transport.kind === 'http' ? Object.values(transport.headers) : [],
  );
  const variables = mcpServers.flatMap(({ transport }) =>
    transport.kind === 'stdio' ? Object.values(transport.env) : [],
  );
  const tokens = intelligence.endpoints.map(({ token }) => token);
  return { sent: distinct([...tokens, ...headers, serve?.bearer ?? null]), handedOn: distinct(variables) };
}

function distinct(values: readonly (SecretRef | string | null)[]): SecretRef[] {
  const refs = values.filter((value) => typeof value === 'object' && value !== null);
  return [...new Map(refs.map((ref) => [formatSecret(ref), ref])).values()];
}

function report(error: unknown, where: string | null, context: ResolveContext): void {
  if (!(error instanceof AgentdError)) throw error;
  context.problems.add({ code: error.code, where, message: error.message, remedy: error.remedy });
}

function checkReadable(path: string, context: ResolveContext): void {
  try {
    accessSync(path, constants.R_OK);
  } catch {
    refuse(context, ['tls_ca'], `the certificate file ${path} cannot be read`);
  }
}
