import { resolve } from 'node:path';
import { Command } from 'commander';
import { AgentdError } from '../../protocol/errors.ts';
import { parseDuration } from '../config/quantities.ts';
import type { Host, VerbAction } from './host.ts';
import type { LogFlags } from './serving.ts';

interface CoordinateFlags extends LogFlags {
  readonly listen?: string;
  readonly db?: string;
  readonly bearerFile?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsClientCa?: string;
  readonly maxAttempts?: string;
  readonly dedupeHorizon?: string;
  readonly tenantQuota?: string;
  readonly metricsAddr?: string;
}

const DEFAULT_LISTEN = 'http://127.0.0.1:7411';
const DEFAULT_DB = 'agentd-ledger.db';

/** `agentd coordinate`: the coordination server (contract, section 9). */
export function coordinateCommand(run: (action: VerbAction) => void): Command {
  return new Command('coordinate')
    .description('serve the work ledger over MCP: who may own an item')
    .option('--listen <url>', `where to listen [AGENT_COORDINATE_LISTEN] (default: ${DEFAULT_LISTEN})`)
    .option('--db <path>', `SQLite file, created when absent [AGENT_COORDINATE_DB] (default: ${DEFAULT_DB})`)
    .option('--bearer-file <path>', 'token that clients must present [AGENT_COORDINATE_BEARER_FILE]')
    .option('--tls-cert <path>', 'certificate, PEM [AGENT_COORDINATE_TLS_CERT]')
    .option('--tls-key <path>', 'private key, PEM [AGENT_COORDINATE_TLS_KEY]')
    .option('--tls-client-ca <path>', 'authority of client certificates [AGENT_COORDINATE_TLS_CLIENT_CA]')
    .option(
      '--max-attempts <n>',
      'attempts before an item is given up [AGENT_COORDINATE_MAX_ATTEMPTS] (default: 5)',
    )
    .option(
      '--dedupe-horizon <duration>',
      'how long a settled key is remembered [AGENT_COORDINATE_DEDUPE_HORIZON] (default: 168h)',
    )
    .option(
      '--tenant-quota <n>',
      'most leases one tenant holds at a time [AGENT_COORDINATE_TENANT_QUOTA] (default: no limit)',
    )
    .option(
      '--metrics-addr <host:port>',
      'plain listener for /metrics, /healthz and /readyz [AGENT_COORDINATE_METRICS_ADDR]',
    )
    .option('--log-level <level>', 'trace, debug, info, warn or error (default: info)')
    .option('--log-format <format>', 'json or text (default: text on a terminal)')
    .action((flags: CoordinateFlags) => run((host) => coordinate(flags, host)));
}

async function coordinate(flags: CoordinateFlags, host: Host): Promise<number> {
  const settings = readSettings(flags, host);
  const [{ openServingLog, serveUntilSignal }, { startCoordinator }, { openLedger }, { fileToken }] =
    await Promise.all([
      import('./serving.ts'),
      import('../coordination/coordinator.ts'),
      import('../coordination/open-ledger.ts'),
      import('../coordination/file-token.ts'),
    ]);
  const log = await openServingLog(host, flags);
  const { db, policy, listen, bearerFile, tls } = settings;
  const metrics = settings.metricsAddr === undefined ? {} : { metricsAddr: settings.metricsAddr };
  const bearer = bearerFile === undefined ? {} : { bearer: fileToken(bearerFile) };
  log.info('proc.start', { verb: 'coordinate' });
  if (/^postgres(ql)?:\/\/[^/@]*:[^/@]+@/.test(flags.db ?? '')) {
    log.warn('config.warn', {
      msg: 'the password in --db can be seen by every user of this machine: use AGENT_COORDINATE_DB or PGPASSFILE',
    });
  }
  const start = async (): ReturnType<typeof startCoordinator> => {
    const ledger = await openLedger(db, host.cwd, policy, log);
    return await startCoordinator({ ledger, listen, ...bearer, ...tls, ...metrics, log });
  };
  return serveUntilSignal(host, log, start, ({ metricsUrl }) =>
    metricsUrl === null ? {} : { metrics_url: metricsUrl },
  );
}

function readSettings(flags: CoordinateFlags, host: Host) {
  const text = (flag: string | undefined, name: string): string | undefined => {
    const value = flag ?? host.env[`AGENT_COORDINATE_${name}`];
    return value === '' ? undefined : value;
  };
  const file = (flag: string | undefined, name: string): string | undefined => {
    const path = text(flag, name);
    return path === undefined ? undefined : resolve(host.cwd, path);
  };
  return {
    listen: text(flags.listen, 'LISTEN') ?? DEFAULT_LISTEN,
    db: text(flags.db, 'DB') ?? DEFAULT_DB,
    bearerFile: file(flags.bearerFile, 'BEARER_FILE'),
    metricsAddr: text(flags.metricsAddr, 'METRICS_ADDR'),
    tls: tlsFiles(
      file(flags.tlsCert, 'TLS_CERT'),
      file(flags.tlsKey, 'TLS_KEY'),
      file(flags.tlsClientCa, 'TLS_CLIENT_CA'),
    ),
    policy: {
      maxAttempts: count('--max-attempts', text(flags.maxAttempts, 'MAX_ATTEMPTS')) ?? 5,
      dedupeHorizonMs: horizon(text(flags.dedupeHorizon, 'DEDUPE_HORIZON') ?? '168h'),
      tenantQuota: count('--tenant-quota', text(flags.tenantQuota, 'TENANT_QUOTA')),
    },
  };
}

function count(flag: string, value: string | undefined): number | null {
  if (value === undefined) return null;
  if (/^[1-9]\d{0,8}$/.test(value)) return Number(value);
  throw new AgentdError('USAGE', `${flag} "${value}" is not a whole number from 1`);
}

function horizon(value: string): number {
  const ms = parseDuration(value);
  if (ms !== null) return ms;
  throw new AgentdError(
    'USAGE',
    `--dedupe-horizon "${value}" is not a duration such as 30m, 24h or a number of seconds`,
  );
}

function tlsFiles(
  certFile: string | undefined,
  keyFile: string | undefined,
  clientCaFile: string | undefined,
) {
  if (certFile === undefined && keyFile === undefined && clientCaFile === undefined) return {};
  if (certFile === undefined || keyFile === undefined) {
    throw new AgentdError('USAGE', '--tls-cert and --tls-key go together, and --tls-client-ca needs both');
  }
  return { tls: { certFile, keyFile, ...(clientCaFile === undefined ? {} : { clientCaFile }) } };
}
