import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AgentdProcess, type Line } from '../../../scripts/fleet/agentd-process.ts';
import { inShard } from '../../../supervisor/gates/shard-gate.ts';
import {
  ResourceLeaseServer,
  type ResourceLeaseServerOptions,
} from '../../fixtures/mcp/resource-lease-server.ts';
import { eventually } from '../../helpers/eventually.ts';

const PLAYBOOK = `
turns:
  - sleep: 200
  - tool: { name: jobs__file, arguments: { uri: "{{event.uri}}", result: "done" } }
  - sleep: 200
  - final: '{{last.text}}'
`;
const config = (url: string, folder: string): string => `
# A script does not notice that a call failed. The contract does.
agent: { instruction: Do the job., output_contract: { type: object, required: [filed] } }
intelligence: { endpoints: ["script:${join(folder, 'playbook.yaml')}"] }
mcp: { servers: [{ name: jobs, endpoint: "${url}" }] }
routes:
  - name: jobs
    match: "job:///**"
    debounce: 0
    shard_key: { metadata: /tenant }
    claim: { server: jobs, style: resource, ttl: 6s }
`;

let folder = '';
let server: ResourceLeaseServer | null = null;
const supervisors: AgentdProcess[] = [];
const told: { supervisor: AgentdProcess; line: Line }[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentd-resource-leases-'));
});

afterEach(async () => {
  for (const one of supervisors) one.kill('SIGKILL');
  await Promise.all(supervisors.splice(0).map(({ exited }) => exited));
  told.length = 0;
  await server?.stop();
  server = null;
  await rm(folder, { recursive: true, force: true });
});

const jobs = (count: number): string[] => Array.from({ length: count }, (_, index) => `job:///${index}`);

async function serve(options: Partial<ResourceLeaseServerOptions> = {}): Promise<ResourceLeaseServer> {
  const resources = Object.fromEntries(jobs(12).map((uri) => [uri, { order: uri }]));
  server = await ResourceLeaseServer.start({ resources, ...options });
  await writeFile(join(folder, 'agentd.yaml'), config(server.url, folder));
  await writeFile(join(folder, 'playbook.yaml'), PLAYBOOK);
  return server;
}

async function supervise(...flags: string[]): Promise<AgentdProcess> {
  const common = ['supervise', '--config', join(folder, 'agentd.yaml'), '--log-format', 'json'];
  const supervisor = new AgentdProcess(`supervisor ${supervisors.length}`, [...common, ...flags]);
  supervisors.push(supervisor);
  supervisor.onLine((line) => told.push({ supervisor, line }));
  await supervisor.line('proc.ready', ({ event }) => event === 'proc.ready');
  return supervisor;
}

describe('a fleet that claims in the resources themselves', () => {
  it.each(['expires_in_ms', 'expires_at'] as const)(
    'does each job once although one of three is killed with -9 in the middle (leases told as %s)',
    async (form) => {
      const source = await serve({ form });
      const [, victim] = await Promise.all([supervise(), supervise(), supervise()]);
      const working = (): boolean =>
        told.some(({ supervisor, line }) => supervisor === victim && line.event === 'trigger.fired');
      await eventually('the victim to be at work', working);
      victim?.kill('SIGKILL');
      const done = (): boolean => jobs(12).every((uri) => source.holder(uri) === '<acked>');
      await eventually('every job to be acked', done, 120_000);
      expect(source.effects.map(({ uri }) => uri).sort()).toEqual(jobs(12).sort());
      for (const one of supervisors) if (one !== victim) one.kill('SIGTERM');
      const ends = await Promise.all(supervisors.map(({ exited }) => exited));
      expect(ends.map(({ code, signal }) => signal ?? code).sort()).toEqual([0, 0, 'SIGKILL']);
    },
    180_000,
  );

  it('and shard by the tenant in the metadata does each job in the replica of its tenant', async () => {
    const tenants = ['acme', 'globex', 'initech', 'umbrella', 'hooli'];
    const tenantOf = (uri: string): string =>
      tenants[Number(uri.slice('job:///'.length)) % tenants.length] ?? '';
    const source = await serve({
      meta: Object.fromEntries(jobs(12).map((uri) => [uri, { tenant: tenantOf(uri) }])),
    });
    const replicas = await Promise.all([supervise('--shard', '0/2'), supervise('--shard', '1/2')]);
    await eventually(
      'every job to be acked',
      () => jobs(12).every((uri) => source.holder(uri) === '<acked>'),
      120_000,
    );
    const worked = (index: number): unknown[] =>
      told
        .filter(({ supervisor, line }) => supervisor === replicas[index] && line.event === 'claim.granted')
        .map(({ line }) => line.item)
        .sort();
    for (const index of [0, 1]) {
      const mine = jobs(12).filter((uri) => inShard(tenantOf(uri), index, 2));
      expect(mine.length).toBeGreaterThan(0);
      expect([...new Set(worked(index))]).toEqual(mine.sort());
    }
    expect(source.effects).toHaveLength(12);
  }, 180_000);
});
