import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { eventually } from './eventually.ts';

const run = promisify(execFile);
const ROOT = '/usr/lib/postgresql';

/** The newest installed server's programs, or null. */
export const POSTGRES_BIN: string | null = findPrograms();

/** Why tests against a real PostgreSQL cannot run here, or null. Printed once by whoever skips. */
export const POSTGRES_MISSING: string | null =
  POSTGRES_BIN !== null
    ? null
    : `no PostgreSQL server under ${ROOT}: these tests are skipped. scripts/ensure-postgres.sh installs it.`;

/** A private server with its own data folder and port. */
export interface PostgresServer {
  /** Makes an empty database and returns its URL. */
  createDatabase(): Promise<string>;
  /** The URL of a database by name. */
  url(database: string): string;
  /** Stops at once, breaking every connection, and starts again on the same port. */
  restart(): Promise<void>;
  /** Stops it and removes its data. */
  stop(): Promise<void>;
}

/**
 * Starts a server. It refuses to run as root, so root drops to another user first.
 *
 * @param durable whether commits reach the disk; for measuring
 */
export async function startPostgres(durable = false): Promise<PostgresServer> {
  const bin = POSTGRES_BIN;
  if (bin === null) throw new Error(POSTGRES_MISSING ?? '');
  const folder = mkdtempSync(join(tmpdir(), 'agentd-postgres-'));
  const data = join(folder, 'data');
  const port = await freePort();
  const drop = await unprivileged(folder);
  const command = (program: string, args: readonly string[]): [string, string[]] => {
    const [first = '', ...rest] = [...drop, join(bin, program), ...args];
    return [first, rest];
  };
  const initdb = ['-D', data, '-U', 'agentd', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
  await run(...command('initdb', initdb));
  const settings = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: folder,
    max_connections: '120',
    shared_buffers: '64MB',
    ...(durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const url = (database: string): string => `postgres://agentd@127.0.0.1:${port}/${database}`;

  const start = async (): Promise<() => Promise<void>> => {
    const server = spawn(...command('postgres', ['-D', data, ...flags]), { stdio: 'ignore' });
    const ended = once(server, 'exit');
    await eventually('PostgreSQL to accept connections', async () => {
      if (server.exitCode !== null) throw new Error(`postgres ended with ${server.exitCode}`);
      await ask(url('postgres'), 'SELECT 1');
      return true;
    });
    return async () => {
      // SIGINT: fast shutdown, which breaks the connections.
      server.kill('SIGINT');
      await ended;
    };
  };
  let shutdown = await start();
  let databases = 0;
  return {
    url,
    createDatabase: async () => {
      databases += 1;
      const name = `test_${databases}`;
      await ask(url('postgres'), `CREATE DATABASE ${name}`);
      return url(name);
    },
    restart: async () => {
      await shutdown();
      shutdown = await start();
    },
    stop: async () => {
      await shutdown();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Runs one statement on a connection of its own. */
export async function ask(url: string, statement: string): Promise<readonly unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}

function findPrograms(): string | null {
  if (!existsSync(ROOT)) return null;
  const versions = readdirSync(ROOT).sort((one, other) => Number(other) - Number(one));
  const found = versions
    .map((version) => join(ROOT, version, 'bin'))
    .find((bin) => existsSync(join(bin, 'initdb')));
  return found ?? null;
}

/** What to put in front of a command so that it does not run as root; the folder becomes its user's. */
async function unprivileged(folder: string): Promise<readonly string[]> {
  if (process.getuid?.() !== 0) return [];
  const accounts = readFileSync('/etc/passwd', 'utf8').split('\n');
  const account = ['postgres', 'nobody']
    .map((name) => accounts.find((line) => line.startsWith(`${name}:`)))
    .find((line) => line !== undefined);
  const [, , uid = '65534', gid = '65534'] = account?.split(':') ?? [];
  chmodSync(folder, 0o700);
  await run('chown', [`${uid}:${gid}`, folder]);
  return ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}
