import { Pool, type PoolClient, type PoolConfig, types as pgTypes } from 'pg';
import { ConnectFailure } from './failures.ts';

/** Connections one server holds at most, besides the one that listens. */
export const POOL_SIZE = 6;
const CONNECT_MS = 5_000;
/** A statement of ours takes milliseconds; one that takes this long is stuck, ms. */
const STATEMENT_MS = 15_000;
const IDLE_MS = 60_000;

const INT8 = 20;
/** Ids, tokens and times stay far below 2^53, so they are read as numbers. */
const types: NonNullable<PoolConfig['types']> = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8 ? Number : pgTypes.getTypeParser(oid, format)) as typeof pgTypes.getTypeParser,
};

/** The settings of every connection to `url`. */
export function connectionConfig(url: string) {
  return {
    connectionString: url,
    application_name: 'agentd-coordinate',
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: STATEMENT_MS,
    idle_in_transaction_session_timeout: STATEMENT_MS,
    // A peer that vanished without a word is noticed within the statement's time.
    query_timeout: STATEMENT_MS + 5_000,
    keepAlive: true,
    // Our statements all have an index to use, also while a young table has no statistics yet.
    options: '-c enable_seqscan=off -c jit=off',
    types,
  };
}

/** A bounded pool. Errors of idle connections are told to `onIdleError`; the pool replaces them. */
export function openPool(url: string, onIdleError: (error: Error) => void): Pool {
  const pool = new Pool({ ...connectionConfig(url), max: POOL_SIZE, idleTimeoutMillis: IDLE_MS });
  pool.on('error', onIdleError);
  // The pool listens to a connection only while it is idle; one that breaks while it is in use
  // between two statements must not end the process. Whoever uses it finds out at the next one.
  pool.on('connect', (client) => client.on('error', onIdleError));
  return pool;
}

/** Runs `use` on a connection, which is thrown away when `use` fails. */
export async function withClient<T>(pool: Pool, use: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await connect(pool);
  try {
    const value = await use(client);
    client.release();
    return value;
  } catch (error) {
    client.release(error instanceof Error ? error : true);
    throw error;
  }
}

async function connect(pool: Pool): Promise<PoolClient> {
  try {
    return await pool.connect();
  } catch (error) {
    throw new ConnectFailure(error);
  }
}

/** The database of a URL for people: no user, no password (invariant 9). */
export function databaseName(url: string): string {
  try {
    const { hostname, port, pathname, searchParams } = new URL(url);
    const host = hostname === '' ? (searchParams.get('host') ?? 'local socket') : hostname;
    return `postgres://${host}${port === '' ? '' : `:${port}`}${pathname}`;
  } catch {
    return 'postgres://…';
  }
}
