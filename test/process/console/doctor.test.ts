import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  checkCgroup,
  checkClock,
  checkDescriptors,
  checkMachine,
  checkNode,
} from '../../../supervisor/console/doctor/machine.ts';
import { checkFolder, checkPort } from '../../../supervisor/console/doctor/wiring.ts';
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
      'configuration',
    ]);
    expect(of('node')[0]?.verdict).toBe('ok');
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
