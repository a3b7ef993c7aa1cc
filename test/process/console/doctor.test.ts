import { once } from 'node:events';
import { access, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { checkChild } from '../../../supervisor/console/doctor/child.ts';
import { checkLedger } from '../../../supervisor/console/doctor/ledger.ts';
import {
  checkCgroup,
  checkClock,
  checkDescriptors,
  checkMachine,
  checkNode,
} from '../../../supervisor/console/doctor/machine.ts';
import { checkFolder, checkPort } from '../../../supervisor/console/doctor/wiring.ts';
import { openLedger } from '../../../supervisor/coordination/open-ledger.ts';
import { ask, POSTGRES_MISSING, type PostgresServer, startPostgres } from '../../helpers/postgres.ts';
import { runVerb } from '../../helpers/run-verb.ts';
import { type ServingProcess, startServing } from '../../helpers/serving-process.ts';

let folder = '';
let serving: ServingProcess[] = [];
let http: Server[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentd-doctor-'));
});
afterEach(async () => {
  await Promise.all(serving.map((one) => one.stop()));
  for (const server of http) {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }
  serving = [];
  http = [];
  await rm(folder, { recursive: true, force: true });
});

async function listening(server: Server): Promise<number> {
  http.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

interface Line {
  readonly check: string;
  readonly verdict: string;
  readonly detail: string;
  readonly remedy: string | null;
}

async function doctor(...args: string[]) {
  const { code, stdout } = await runVerb(['doctor', '--json', ...args]);
  const findings = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
  return { code, findings, of: (check: string) => findings.filter((one) => one.check === check) };
}

describe('agentd doctor', () => {
  it('looks at the machine when no configuration is given', async () => {
    const { findings, of } = await doctor();
    expect(findings.map(({ check }) => check)).toEqual([
      'node',
      'open files',
      'cgroup',
      'subreaper',
      'setpriv',
      'clock',
      'child',
      'configuration',
    ]);
    expect(of('node')[0]?.verdict).toBe('ok');
    expect(of('child')).toMatchObject([
      { verdict: 'ok', detail: expect.stringMatching(/^starts, is ready after \d+ ms and ends$/) },
    ]);
    for (const { verdict, remedy } of findings) expect(remedy === null).toBe(verdict === 'ok');
  });

  it('passes a configuration whose peers answer and whose ports are free', async () => {
    const inbox = await startServing(['inbox', folder, '--listen', 'http://127.0.0.1:0']);
    const coordinator = await startServing([
      ...['coordinate', '--listen', 'http://127.0.0.1:0', '--db', join(folder, 'ledger.sqlite')],
    ]);
    serving = [inbox, coordinator];
    const model = await listening(createServer((_request, response) => response.writeHead(404).end()));
    const { code, of } = await doctor(
      ...['--instruction', 'x', '--intelligence', `http://127.0.0.1:${model}/v1`],
      ...['--mcp', `inbox=${inbox.url}`, '--mcp', `coord=${coordinator.url}`],
      ...['--route', 'inbox:///**=>claim:coord', '--serve-mcp', 'http://127.0.0.1:0'],
    );
    expect(of('mcp inbox')).toMatchObject([{ verdict: 'ok' }]);
    expect(of('mcp coord')).toMatchObject([{ verdict: 'ok', detail: expect.stringContaining('leases') }]);
    expect(of('model')).toMatchObject([{ verdict: 'ok', detail: 'reachable (HTTP 404)' }]);
    expect(code).toBe(0);
  });

  it('fails with a remedy for each thing that will not work, and hangs on none', async () => {
    const mute = await listening(createServer(() => undefined));
    const skewed = await listening(
      createServer((_request, response) =>
        response.writeHead(200, { date: new Date(Date.now() - 3_600_000).toUTCString() }).end(),
      ),
    );
    const inbox = await startServing(['inbox', folder, '--listen', 'http://127.0.0.1:0']);
    serving = [inbox];
    const { code, of } = await doctor(
      ...['--instruction', 'x'],
      ...['--intelligence', `http://127.0.0.1:${mute}/v1,http://127.0.0.1:${skewed}/v1`],
      ...['--mcp', `wrong=${inbox.url}`, '--mcp', `mute=http://127.0.0.1:${mute}/mcp`],
      ...['--mcp', 'gone=stdio:/no/such/program'],
      ...['--route', 'inbox:///**=>claim:wrong', '--metrics-addr', `127.0.0.1:${mute}`],
      ...['--health-file', join(folder, 'missing', 'health.json')],
    );
    expect(code).toBe(1);
    expect(of('mcp wrong')).toMatchObject([
      { verdict: 'fail', detail: expect.stringContaining('work.claim') },
    ]);
    expect(of('mcp mute')).toMatchObject([{ verdict: 'fail' }]);
    expect(of('mcp gone')).toMatchObject([{ verdict: 'fail', detail: expect.stringContaining('program') }]);
    expect(of('model 1')).toMatchObject([{ verdict: 'warn', detail: expect.stringContaining('no answer') }]);
    expect(of('model 2')).toMatchObject([{ verdict: 'ok' }]);
    expect(of('clock')).toMatchObject([{ verdict: 'ok' }, { verdict: 'warn' }]);
    expect(of(`port ${mute}`)).toMatchObject([{ verdict: 'fail', detail: expect.stringContaining('taken') }]);
    expect(of('folder')).toContainEqual(expect.objectContaining({ verdict: 'fail' }));
  });

  it('names what is wrong with a configuration and still looks at the rest', async () => {
    const { code, of } = await doctor('--intelligence', 'script:/no/such/playbook', '--mcp', 'nonsense');
    expect(code).toBe(1);
    expect(of('configuration')).toMatchObject([{ verdict: 'fail' }]);
    expect(of('node')).toHaveLength(1);
  });

  it('prints one line each for people', async () => {
    await writeFile(join(folder, 'agentd.yaml'), 'limits: { max_stepz: 3 }\n');
    const { code, stdout } = await runVerb(['doctor', '--config', join(folder, 'agentd.yaml')]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^ok {4}node {14}version/);
    expect(stdout).toMatch(/\nfail {2}configuration {5}[^\n]*max_stepz/);
  });
});

describe('the checks of the machine', () => {
  it('judge versions, limits, clocks, folders and ports', async () => {
    expect(checkNode('18.20.0').verdict).toBe('fail');
    expect(checkNode('24.1.0').verdict).toBe('ok');
    const limits = (soft: string) => `Limit  Soft Limit Hard Limit Units\nMax open files  ${soft}  9 files\n`;
    expect(checkDescriptors(limits('256'), 64)).toMatchObject({ verdict: 'warn' });
    expect(checkDescriptors(limits('unlimited'), 4_096).verdict).toBe('ok');
    expect(checkDescriptors(null, 64).verdict).toBe('ok');
    expect(checkClock(new Date(0)).verdict).toBe('fail');
    expect(checkFolder('x', join(folder, 'missing')).detail).toContain('it does not exist');
    await writeFile(join(folder, 'file'), '');
    expect(checkFolder('x', join(folder, 'file')).detail).toContain('not a folder');
    expect((await checkPort('--x', '192.0.2.1', 0)).verdict).toBe('fail');
    expect((await checkMachine(64, false)).every(({ verdict }) => verdict !== 'fail')).toBe(true);
    // Without delegation a configuration that asks for cgroups fails where others are only warned.
    const [asked, not] = [checkCgroup(true).verdict, checkCgroup(false).verdict];
    expect([
      ['ok', 'ok'],
      ['fail', 'warn'],
    ]).toContainEqual([asked, not]);
  });
});

describe('the check of a child', () => {
  it.each([
    [
      'ends at once',
      'console.error("out of order"); process.exit(3)',
      /^ends before it is ready, with exit code 3: out of order$/,
    ],
    ['stays silent', 'process.stdin.resume()', /^starts, but is not ready within 1 s$/],
    [
      'speaks something else',
      'console.log(JSON.stringify({hello: 1})); process.stdin.resume()',
      /^starts, but speaks another protocol$/,
    ],
  ])('says why a child that %s will not do', async (_name, source, said) => {
    const program = join(folder, 'child.cjs');
    await writeFile(program, source);
    const finding = await checkChild(process.env, program, 1_000);
    expect(finding.verdict).toBe('fail');
    expect(finding.detail).toMatch(said);
    expect(finding.remedy).toContain(program);
  });

  it('says when the program is not there', async () => {
    const finding = await checkChild(process.env, join(folder, 'absent.js'));
    expect(finding).toMatchObject({ verdict: 'fail', detail: expect.stringContaining('absent.js') });
  });
});

describe('the check of a ledger in SQLite', () => {
  const path = () => join(folder, 'ledger.sqlite');
  const policy = { maxAttempts: 5, dedupeHorizonMs: 1_000, tenantQuota: null };

  it('takes one that can be made, one that is there, and one in use', async () => {
    expect(await checkLedger('ledger.sqlite', folder)).toMatchObject({
      verdict: 'ok',
      detail: expect.stringContaining('can be made'),
    });
    await expect(access(path())).rejects.toThrow();
    const ledger = await openLedger('ledger.sqlite', folder, policy);
    expect(await checkLedger(path(), '/')).toMatchObject({
      verdict: 'ok',
      detail: `${path()} answers, schema version 1`,
    });
    await ledger.close();
    expect(await checkLedger(path(), '/')).toMatchObject({ verdict: 'ok' });
  });

  it('refuses another version, a file that is no database, a folder, and a folder that is not there', async () => {
    await (await openLedger('ledger.sqlite', folder, policy)).close();
    const database = new Sqlite(path());
    database.exec("UPDATE agentd_schema SET version = 99 WHERE component = 'ledger'");
    database.close();
    expect(await checkLedger(path(), '/')).toMatchObject({
      verdict: 'fail',
      detail: expect.stringContaining('version 99'),
    });
    await writeFile(join(folder, 'text.db'), 'not a database, but long enough to have a header\n'.repeat(40));
    expect(await checkLedger('text.db', folder)).toMatchObject({
      verdict: 'fail',
      detail: expect.stringContaining('NOTADB'),
    });
    expect(await checkLedger('.', folder)).toMatchObject({
      verdict: 'fail',
      detail: expect.stringContaining('not a regular file'),
    });
    expect(await checkLedger('no/such/folder.db', folder)).toMatchObject({
      check: 'ledger',
      verdict: 'fail',
      detail: expect.stringContaining('does not exist'),
    });
  });

  it('is part of agentd doctor, by flag or by variable, and changes the exit code', async () => {
    const good = await runVerb(['doctor', '--json', '--db', '${DIR}/a.db'], { env: { DIR: folder } });
    expect(good.stdout).toContain(`${join(folder, 'a.db')} does not exist yet and can be made`);
    expect(good.code).toBe(0);
    const bad = await runVerb(['doctor', '--json'], { env: { AGENT_COORDINATE_DB: '/no/such/folder/a.db' } });
    expect(bad.stdout).toContain('"check":"ledger","verdict":"fail"');
    expect(bad.code).toBe(1);
  });
});

if (POSTGRES_MISSING !== null) console.warn(POSTGRES_MISSING);

describe.skipIf(POSTGRES_MISSING !== null)('the check of a ledger in PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.stop());

  it('tells an empty database, a ledger, another version, missing rights and no database apart', async () => {
    const url = await server.createDatabase();
    expect(await checkLedger(url, '/')).toMatchObject({
      verdict: 'ok',
      detail: expect.stringContaining('no ledger yet'),
    });
    await ask(url, 'CREATE ROLE nobody_much LOGIN');
    await ask(url, `REVOKE CREATE ON DATABASE ${new URL(url).pathname.slice(1)} FROM PUBLIC`);
    const other = url.replace('agentd@', 'nobody_much:se%20cret@');
    expect(await checkLedger(other, '/')).toMatchObject({
      verdict: 'fail',
      detail: expect.stringContaining('may not use'),
    });
    await (await openLedger(url, '/', { maxAttempts: 5, dedupeHorizonMs: 1_000, tenantQuota: null })).close();
    expect(await checkLedger(url, '/')).toMatchObject({
      verdict: 'ok',
      detail: expect.stringContaining('schema version 1'),
    });
    expect(await checkLedger(other, '/')).toMatchObject({
      verdict: 'fail',
      detail: expect.stringContaining('may not use'),
    });
    await ask(url, "UPDATE agentd.agentd_schema SET version = 99 WHERE component = 'ledger'");
    expect(await checkLedger(url, '/')).toMatchObject({
      verdict: 'fail',
      detail: expect.stringContaining('version 99'),
    });
    const gone = await checkLedger(server.url('nowhere'), '/');
    expect(gone).toMatchObject({ verdict: 'fail', detail: expect.stringContaining('nowhere') });
  });

  it('says that nobody listens, and never the password', async () => {
    const finding = await checkLedger('postgres://me:se%20cret@127.0.0.1:1/x', '/');
    expect(finding).toMatchObject({ verdict: 'fail', detail: expect.stringContaining('ECONNREFUSED') });
    expect(JSON.stringify(finding)).not.toContain('se%20cret');
  });
});
