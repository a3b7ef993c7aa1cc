import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { AgentdError } from '../../../protocol/errors.ts';
import {
  capacityDocument,
  inventoryDocument,
  operatorResult,
  statusDocument,
  subagentDocument,
  subagentResultDocument,
} from '../../../protocol/management.ts';
import type { ServeConfig } from '../../../supervisor/config/config.ts';
import { type RunningManagement, startManagement } from '../../../supervisor/surface/management.ts';
import { eventually } from '../../helpers/eventually.ts';
import { type FakeManagementPort, fakeManagementPort } from '../../helpers/fake-management-port.ts';
import { nullLog } from '../../helpers/null-log.ts';
import { connectSdkClient, type TestClient } from '../../helpers/sdk-client.ts';

const LOOPBACK: ServeConfig = {
  url: 'http://127.0.0.1:0',
  certFile: null,
  keyFile: null,
  clientCaFile: null,
  bearer: null,
};

describe('management surface', () => {
  let port: FakeManagementPort;
  let management: RunningManagement | undefined;
  const closing: (() => Promise<unknown>)[] = [];

  beforeEach(() => {
    port = fakeManagementPort();
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
    await management?.close(1000);
    management = undefined;
  });

  async function start(): Promise<string> {
    management = await startManagement({ serve: LOOPBACK, port, log: nullLog });
    return management.url;
  }
  async function connect(url: string): Promise<TestClient> {
    const client = await connectSdkClient(url);
    closing.push(() => client.close());
    return client;
  }
  const read = async (client: TestClient, uri: string): Promise<string> => {
    const [content] = (await client.client.readResource({ uri })).contents;
    return content !== undefined && 'text' in content ? String(content.text) : '';
  };
  const operate = (
    client: TestClient,
    method: string,
    params: Record<string, unknown> = {},
  ): Promise<unknown> => client.client.request({ method, params }, z.looseObject({}));

  it('serves every resource it lists, as documents of the contract', async () => {
    const client = await connect(await start());
    const { resources } = await client.client.listResources();
    expect(resources.map((resource) => resource.uri)).toEqual([
      'agent://capabilities',
      'agent://status',
      'agent://inventory',
      'agent://capacity',
      'agent://intelligence',
      'agent://metrics',
      'agent://events',
      'agent://config/effective',
    ]);
    for (const { uri } of resources) expect(await read(client, uri)).not.toBe('');
    statusDocument.parse(JSON.parse(await read(client, 'agent://status')));
    inventoryDocument.parse(JSON.parse(await read(client, 'agent://inventory')));
    capacityDocument.parse(JSON.parse(await read(client, 'agent://capacity')));
    subagentDocument.parse(JSON.parse(await read(client, 'agent://subagent/0.2')));
    subagentResultDocument.parse(JSON.parse(await read(client, 'agent://subagent/0.1/result')));
    expect(await read(client, 'agent://metrics')).toContain('agent_up 1');
    expect(JSON.parse(await read(client, 'agent://run/run-1'))).toMatchObject({ status: 'completed' });
    expect(JSON.parse(await read(client, 'agent://session/inbox%2F%C3%A4'))).toMatchObject({ turns: 2 });
    const { resourceTemplates } = await client.client.listResourceTemplates();
    expect(resourceTemplates.map((template) => template.uriTemplate)).toEqual([
      'agent://run/{run_id}',
      'agent://session/{id}',
      'agent://subagent/{handle}',
      'agent://subagent/{handle}/result',
    ]);
  });

  it('answers an unknown resource with -32002', async () => {
    const client = await connect(await start());
    for (const uri of [
      'agent://none',
      'agent://run/none',
      'agent://run/run-1/result',
      'agent://run/',
      'agent://run/%ff',
      'agent://subagent/0.9',
      'agent://subagent/0.2/result',
      'file:///etc/passwd',
    ]) {
      await expect(client.client.readResource({ uri })).rejects.toMatchObject({ code: -32002 });
    }
    await expect(client.client.subscribeResource({ uri: 'agent://none' })).rejects.toMatchObject({
      code: -32002,
    });
  });

  it('serves events by cursor and filter, and hides them where told to', async () => {
    const client = await connect(await start());
    const line = { ts: '2026-03-01T00:00:00.000Z', run_id: 'r', agent_id: 'sup', agent_path: '0', pid: 1 };
    port.ring.append({ ...line, level: 'info', event: 'proc.start', comp: 'supervisor' });
    port.ring.append({ ...line, level: 'warn', event: 'claim.lost', comp: 'supervisor' });
    const page = JSON.parse(await read(client, 'agent://events?after=0&level=warn&event=claim,proc')) as {
      events: { seq: number }[];
    };
    expect(page.events.map((event) => event.seq)).toEqual([2]);
    port.hideEvents = true;
    await expect(client.client.readResource({ uri: 'agent://events' })).rejects.toMatchObject({
      code: -32002,
    });
    await expect(client.client.subscribeResource({ uri: 'agent://events' })).rejects.toMatchObject({
      code: -32002,
    });
    const { resources } = await client.client.listResources();
    expect(resources.map((resource) => resource.name)).not.toContain('events');
  });

  it('tells subscribers of state resources, at a bounded rate and never the last change too few', async () => {
    const client = await connect(await start());
    await client.client.subscribeResource({ uri: 'agent://status' });
    await client.client.subscribeResource({ uri: 'agent://subagent/0.7' });
    management?.changed('agent://status');
    await eventually('the first notice', () => client.updated.length === 1);
    for (let count = 0; count < 10_000; count++) management?.changed('agent://status');
    await eventually('the last notice', () => client.updated.length === 2);
    management?.changed('agent://capacity');
    management?.changed('agent://subagent/0.7');
    await eventually('the subagent', () => client.updated.at(-1) === 'agent://subagent/0.7');
    expect(client.updated).toHaveLength(3);
  });

  it('offers the tools of the contract and passes their arguments on', async () => {
    const client = await connect(await start());
    const { tools } = await client.client.listTools();
    expect(tools.map((tool) => tool.name)).toEqual([
      'status',
      'subagent.spawn',
      'subagent.send',
      'subagent.cancel',
      'subagent.status',
      'subscribe',
      'unsubscribe',
      'resource.read',
      'assign',
    ]);
    const call = async (name: string, args: Record<string, unknown> = {}): Promise<unknown> =>
      (await client.client.callTool({ name, arguments: args })).structuredContent;
    expect(await call('status')).toMatchObject({ phase: 'running' });
    expect(await call('subagent.spawn', { instruction: 'look' })).toEqual({ handle: '0.3', run_id: 'run-3' });
    expect(await call('subagent.send', { handle: '0.2', message: 'hello' })).toMatchObject({ ok: true });
    expect(await call('subagent.cancel', { handle: '0.2', reason: 'enough' })).toMatchObject({ ok: true });
    expect(await call('subagent.status', { handle: '0.2' })).toMatchObject({ status: 'running' });
    expect(await call('subscribe', { server: 'inbox', uri: 'inbox:///**' })).toMatchObject({ ok: true });
    expect(await call('unsubscribe', { server: 'inbox', uri: 'inbox:///**' })).toMatchObject({ ok: true });
    expect(await call('resource.read', { server: 'inbox', uri: 'inbox:///a' })).toMatchObject({
      text: 'body',
    });
    expect(await call('assign', { server: 'inbox', uri: 'inbox:///a' })).toMatchObject({ ok: true });
    expect(port.commands).toEqual([
      ['spawn', { instruction: 'look' }],
      ['send', '0.2', 'hello'],
      ['cancel', '0.2', 'enough'],
      ['watch', 'inbox', 'inbox:///**'],
      ['unwatch', 'inbox', 'inbox:///**'],
      ['read', 'inbox', 'inbox:///a'],
      ['assign', 'inbox', 'inbox:///a'],
    ]);
  });

  it('answers what a tool cannot do with a code and a remedy', async () => {
    port.assign = async () => {
      throw new AgentdError('MCP_UNAVAILABLE', 'server inbox is not connected');
    };
    const client = await connect(await start());
    const call = (name: string, args: Record<string, unknown> = {}): ReturnType<Client['callTool']> =>
      client.client.callTool({ name, arguments: args });
    expect(await call('subagent.cancel', { handle: '0.9' })).toMatchObject({
      isError: true,
      structuredContent: { code: 'SUBAGENT_UNKNOWN' },
    });
    expect(await call('assign', { server: 'inbox', uri: 'x' })).toMatchObject({
      isError: true,
      structuredContent: { code: 'MCP_UNAVAILABLE', kind: 'retry' },
    });
    for (const [name, args] of [
      ['subagent.spawn', {}],
      ['subagent.cancel', { handle: '../x' }],
      ['constructor', {}],
    ] as const) {
      expect(await call(name, args)).toMatchObject({ isError: true });
    }
  });

  it('operator methods act and answer how the instance stands', async () => {
    const client = await connect(await start());
    expect(operatorResult.parse(await operate(client, 'a2a.Drain', { deadline_ms: 500 })).draining).toBe(
      true,
    );
    expect(operatorResult.parse(await operate(client, 'a2a.LameDuck')).lame_duck).toBe(true);
    expect(operatorResult.parse(await operate(client, 'a2a.LameDuck', { ready: true })).lame_duck).toBe(
      false,
    );
    expect(operatorResult.parse(await operate(client, 'a2a.Pause')).paused).toBe(true);
    expect(operatorResult.parse(await operate(client, 'a2a.Resume')).paused).toBe(false);
    expect(await operate(client, 'a2a.Cancel', { handle: '0.2' })).toMatchObject({ cancelled: true });
    expect(port.commands).toEqual([
      ['drain', 500],
      ['lameDuck', true],
      ['lameDuck', false],
      ['pause'],
      ['resume'],
      ['cancel', '0.2', null],
    ]);
    await expect(operate(client, 'a2a.Cancel', { handle: '0.9' })).rejects.toMatchObject({ code: -32602 });
    await expect(operate(client, 'a2a.Drain', { deadline_ms: 'soon' })).rejects.toMatchObject({
      code: -32602,
    });
    await expect(operate(client, 'a2a.Explode')).rejects.toMatchObject({ code: -32601 });
  });

  it('two hundred clients are served and told side by side', async () => {
    const url = await start();
    const clients = await Promise.all(Array.from({ length: 200 }, () => connect(url)));
    await Promise.all(clients.map(({ client }) => client.subscribeResource({ uri: 'agent://status' })));
    management?.changed('agent://status');
    await eventually('every client', () => clients.every((client) => client.updated.length === 1));
  });
});
