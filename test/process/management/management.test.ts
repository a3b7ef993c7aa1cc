import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { eventsPage } from '../../../protocol/event-line.ts';
import {
  capacityDocument,
  inventoryDocument,
  operatorResult,
  statusDocument,
  subagentDocument,
} from '../../../protocol/management.ts';
import { capabilitiesManifest } from '../../../protocol/manifest.ts';
import type { AgentdProcess } from '../../../scripts/fleet/agentd-process.ts';
import { Fleet } from '../../../scripts/fleet/fleet.ts';
import { eventually } from '../../helpers/eventually.ts';

/** A real supervisor on a real inbox, driven from outside by the official client. */
let folder = '';
let fleet: Fleet;
let supervisor: AgentdProcess;
let client: Client;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentd-management-'));
  const documents = join(folder, 'inbox');
  await mkdir(documents);
  await writeFile(
    join(folder, 'slow.yaml'),
    'turns: [ { text: "thinking" }, { sleep: 60000 }, { final: done } ]\n',
  );
  await writeFile(
    join(folder, 'agentd.yaml'),
    `agent: { name: probe, instruction: work }
intelligence: { endpoints: [ "script:${join(folder, 'slow.yaml')}" ] }
mcp: { servers: [ { name: inbox, endpoint: "\${INBOX_URL}" }, { name: coord, endpoint: "\${COORD_URL}" } ] }
routes: [ { name: work, server: inbox, match: "inbox:///**", debounce: 0, max_inflight: 2, claim: { server: coord } } ]
`,
  );
  fleet = await Fleet.start({
    documents,
    state: folder,
    supervisors: [[]],
    common: [
      '--config',
      join(folder, 'agentd.yaml'),
      '--serve-mcp',
      'http://127.0.0.1:0',
      '--metrics-addr',
      '127.0.0.1:0',
    ],
  });
  supervisor = await fleet.startSupervisor(0);
  client = new Client({ name: 'operator', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(fleet.managementUrls[0] ?? '')));
});

afterEach(async () => {
  await client.close().catch(() => undefined);
  fleet.kill();
  await supervisor.exited;
  await rm(folder, { recursive: true, force: true });
});

async function read<T extends z.ZodType>(uri: string, schema: T): Promise<z.infer<T>> {
  const { contents } = await client.readResource({ uri });
  const [first] = contents;
  if (first === undefined || !('text' in first)) throw new Error(`${uri} has no text`);
  return schema.parse(JSON.parse(first.text));
}

const operate = (method: string, params: Record<string, unknown> = {}) =>
  client.request({ method, params }, operatorResult);

const drop = (name: string): Promise<void> => writeFile(join(folder, 'inbox', name), 'something to do');

describe('the management surface of a running supervisor', () => {
  it('shows what the instance is, has and does, and is told of changes', async () => {
    const manifest = await read('agent://capabilities', capabilitiesManifest);
    expect(manifest.identity.instance).toBe('probe');
    expect(manifest.surfaces.management).toBe(fleet.managementUrls[0]);
    const changed: string[] = [];
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
      changed.push(params.uri);
    });
    await client.subscribeResource({ uri: 'agent://inventory' });
    expect(await read('agent://capacity', capacityDocument)).toMatchObject({ free_slots: 2, saturation: 0 });
    await drop('one.txt');
    const inventory = await eventually('the run to be listed', async () => {
      const document = await read('agent://inventory', inventoryDocument);
      return document.subagents.length === 1 && document;
    });
    expect(inventory.subagents[0]).toMatchObject({ status: 'running', route: 'work' });
    expect(inventory.routes).toMatchObject([{ name: 'work', claim: true, inflight: 1 }]);
    await eventually('a notification', () => changed.includes('agent://inventory'));
    expect(await read('agent://capacity', capacityDocument)).toMatchObject({
      free_slots: 1,
      saturation: 0.5,
    });
    const { process: own } = await read('agent://status', statusDocument);
    expect(own?.pid).toBe(supervisor.pid);
    expect(own?.rss_bytes).toBeGreaterThan(10 * 1024 * 1024);
    const events = await read('agent://events', eventsPage);
    expect(events.events.map(({ event }) => event)).toContain('claim.granted');
    await expect(client.readResource({ uri: 'agent://nothing' })).rejects.toMatchObject({ code: -32002 });
  });

  it('pauses, resumes, cancels, goes lame and drains', async () => {
    await drop('one.txt');
    const inventory = await eventually('the run', async () => {
      const document = await read('agent://inventory', inventoryDocument);
      return document.subagents.length === 1 && document;
    });
    const handle = inventory.subagents[0]?.handle ?? '';
    expect(await operate('a2a.Pause')).toMatchObject({ paused: true });
    await drop('two.txt');
    await eventually(
      'the second item to wait',
      async () => (await read('agent://status', statusDocument)).pending_events === 1,
    );
    expect(await operate('a2a.Resume')).toMatchObject({ paused: false });
    await eventually(
      'the second item to run',
      async () => (await read('agent://status', statusDocument)).active_subagents === 2,
    );
    await client.request({ method: 'a2a.Cancel', params: { handle, reason: 'enough' } }, z.looseObject({}));
    const ended = await eventually('its end', async () => {
      const document = await read(`agent://subagent/${handle}`, subagentDocument);
      return document.status !== 'running' && document;
    });
    expect(ended.status).toBe('cancelled');
    expect(await operate('a2a.LameDuck', { ready: false })).toMatchObject({ lame_duck: true });
    const ready = await fetch(new URL('/readyz', fleet.metricsUrls[0]));
    expect(ready.status).toBe(503);
    expect(await ready.text()).toContain('lame_duck');
    expect(await operate('a2a.Drain', { deadline_ms: 5_000 })).toMatchObject({ draining: true });
    expect(await supervisor.exited).toEqual({ code: 0, signal: null });
  });

  it('takes an assigned item while it has a slot, and refuses it by name when it has none', async () => {
    const assign = (name: string) =>
      client.callTool({ name: 'assign', arguments: { server: 'inbox', uri: `inbox:///${name}` } });
    await operate('a2a.Pause');
    for (const name of ['a.txt', 'b.txt', 'c.txt']) await drop(name);
    await eventually(
      'three items to wait',
      async () => (await read('agent://status', statusDocument)).pending_events === 3,
    );
    expect((await assign('a.txt')).isError).toBe(true); // paused: no slot
    await operate('a2a.Resume');
    await eventually(
      'both slots to be taken',
      async () => (await read('agent://capacity', capacityDocument)).free_slots === 0,
    );
    const refused = await assign('c.txt');
    expect(refused.isError).toBe(true);
    expect(JSON.stringify(refused.content)).toContain('no slot is free');
    const unknown = await client.callTool({ name: 'assign', arguments: { server: 'nobody', uri: 'x:///y' } });
    expect(unknown.isError).toBe(true);
  });
});
