import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { errorMessage } from '../../../protocol/errors.ts';
import { type Finding, fail, ok } from './finding.ts';
import { checkFolder } from './wiring.ts';

/** Whether the database of a coordination server can be used. Nothing in it is changed or created. */

const CHECK = 'ledger';
const POSTGRES_URL = /^postgres(ql)?:\/\//;
const DRIVER_REMEDY = 'Install the package again for this Node and platform (npm ci).';

/** @param db as `agentd coordinate --db` takes it */
export function checkLedger(db: string, cwd: string): Promise<Finding> {
  return POSTGRES_URL.test(db) ? checkPostgres(db) : checkSqlite(resolve(cwd, db));
}

async function checkSqlite(path: string): Promise<Finding> {
  const folder = checkFolder('--db', dirname(path));
  // The database keeps further files beside itself.
  if (folder.verdict !== 'ok') return { ...folder, check: CHECK };
  if (!existsSync(path)) return ok(CHECK, `${path} does not exist yet and can be made`);
  try {
    if (!statSync(path).isFile()) throw new Error('it is not a regular file');
    accessSync(path, constants.R_OK | constants.W_OK);
  } catch (error) {
    return fail(
      CHECK,
      `${path} cannot be written: ${reasonOf(error)}`,
      'Give the file to this user (chown), or name another one.',
    );
  }
  try {
    const [{ default: Sqlite }, { NEWEST_SQLITE_SCHEMA, sqliteSchema }] = await Promise.all([
      import('better-sqlite3'),
      import('../../coordination/sqlite/migrations.ts'),
    ]);
    const database = new Sqlite(path, { readonly: true, fileMustExist: true, timeout: 2_000 });
    try {
      return judged(path, sqliteSchema(database), NEWEST_SQLITE_SCHEMA);
    } finally {
      database.close();
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!code.startsWith('SQLITE_')) {
      return fail(CHECK, `the SQLite driver cannot be loaded: ${reasonOf(error)}`, DRIVER_REMEDY);
    }
    return fail(
      CHECK,
      `${path} is no database that can be read: ${reasonOf(error)} (${code})`,
      'Name the file `agentd coordinate` uses, or restore it from a copy.',
    );
  }
}

async function checkPostgres(url: string): Promise<Finding> {
  const [{ Client }, connections, failures, migrations] = await Promise.all([
    import('pg'),
    import('../../coordination/postgres/connections.ts'),
    import('../../coordination/postgres/failures.ts'),
    import('../../coordination/postgres/migrations.ts'),
  ]);
  const name = connections.databaseName(url);
  let client: InstanceType<typeof Client> | null = null;
  try {
    client = new Client(connections.connectionConfig(url));
    // A connection that breaks later says so here; what is asked of it fails then too.
    client.on('error', () => undefined);
    await client.connect();
    const { version, allowed } = await migrations.postgresSchema(client);
    if (!allowed) {
      return fail(
        CHECK,
        `${name} answers, but this user may not use the ledger in it or make one`,
        'GRANT CREATE ON DATABASE to the user of the URL, or USAGE ON SCHEMA agentd and the rights on its tables.',
      );
    }
    return judged(name, version, migrations.NEWEST_POSTGRES_SCHEMA);
  } catch (error) {
    return fail(
      CHECK,
      `${name} cannot be used: ${failures.reasonOf(error).replaceAll('\n', ' ')}`,
      'Start the server, or correct the host, user, password and database of the URL.',
    );
  } finally {
    await client?.end().catch(() => undefined);
  }
}

function judged(name: string, version: number | null, newest: number): Finding {
  if (version === null) return ok(CHECK, `${name} answers; it holds no ledger yet`);
  if (version < 0 || version > newest) {
    return fail(
      CHECK,
      `${name} has ledger schema version ${version}, and this build knows versions up to ${newest}`,
      'Use the version of agentd that wrote it or a newer one, or another database.',
    );
  }
  if (version === newest) return ok(CHECK, `${name} answers, schema version ${version}`);
  return ok(
    CHECK,
    `${name} answers, schema version ${version}; it is brought to ${newest} at the next start`,
  );
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return code === 'EACCES' ? 'permission denied' : errorMessage(error).replaceAll('\n', ' ');
}
