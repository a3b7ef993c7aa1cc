import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { capacityDocument } from '../../../protocol/management.ts';
import { AgentdProcess } from '../../../scripts/fleet/agentd-process.ts';
import { Fleet } from '../../../scripts/fleet/fleet.ts';
import { type ModelServer, startModelServer } from '../../fixtures/model-server.ts';
import { eventually } from '../../helpers/eventually.ts';
import { connectSdkClient, type TestClient } from '../../helpers/sdk-client.ts';

const SLOTS = 2;
let folder = '';
let model: ModelServer;
let fleet: Fleet | null = null;
let operator: TestClient | null = null;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentd-warm-'));
  await mkdir(join(folder, 'inbox'));
  model = await startModelServer([{ kind: 'answer', text: 'fine' }]);
});

afterEach(async () => {
  await operator?.close().catch(() => undefined);
  fleet?.kill();
  await Promise.all((fleet?.supervisors ?? []).map(({ exited }) => exited));
  await model.close();
  await rm(folder, { recursive: true, force: true });
});

async function startMember(more = ''): Promise<Fleet> {
  const config = join(folder, 'agentd.yaml');
  await writeFile(
    config,
    `agent: { instruction: work }
intelligence: { endpoints: [ "${model.origin}/v1" ], model: test-model }
mcp: { servers: [ { name: inbox, endpoint: "\${INBOX_URL}" }, { name: coord, endpoint: "\${COORD_URL}" } ] }
limits: { max_total_subagents: ${SLOTS} }
standby: { enabled: true, assign_from: "coord:work://pending"${more} }
`,
  );
  fleet = await Fleet.start({
    documents: join(folder, 'inbox'),
    state: folder,
    supervisors: [[]],
    common: ['--config', config, '--serve-mcp', 'http://127.0.0.1:0'],
  });
  await fleet.startSupervisor(0);
  operator = await connectSdkClient(fleet.managementUrls[0] ?? '');
  return fleet;
}

async function capacity() {
  const answer = await operator?.client.readResource({ uri: 'agent://capacity' });
  const [first] = answer?.contents ?? [];
  return capacityDocument.parse(JSON.parse(first !== undefined && 'text' in first ? String(first.text) : ''));
}

describe('a standby member', () => {
  it('holds a model connection open for each warm child, says so, and a run starts on one of them', async () => {
    const { coordUrl } = await startMember();
    await eventually(
      'every slot to be warm',
      async () => (await capacity()).warm_children === SLOTS && model.connections() === SLOTS,
    );
    await eventually('that to be said', async () => (await capacity()).intelligence.warm);
    expect(model.requests).toHaveLength(0);
    await writeFile(join(folder, 'inbox', 'item'), 'something to do');
    const submitted = new AgentdProcess('submit', ['work', 'submit', 'inbox:///item', '--url', coordUrl]);
    expect((await submitted.exited).code).toBe(0);
    await model.seen(1);
    expect(model.requests[0]?.connection).toBeLessThanOrEqual(SLOTS);
  });

  it('that is told not to holds none', async () => {
    await startMember(', warm_intelligence: false');
    await eventually('every slot to be warm', async () => (await capacity()).warm_children === SLOTS);
    expect((await capacity()).intelligence.warm).toBe(false);
    expect(model.connections()).toBe(0);
  });
});
