import { readdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import { InboxHarness, listed } from '../../helpers/inbox-harness.ts';
import { type TestClient, toolText } from '../../helpers/sdk-client.ts';

let inbox: InboxHarness;
beforeEach(() => {
  inbox = new InboxHarness();
});
afterEach(() => inbox.dispose());

test('results are filed once per key, counted, and survive a restart', async () => {
  inbox.put('a.txt');
  inbox.put('b.txt');
  const client = await inbox.start();
  const complete = (
    uri: string,
    key: string,
    result = 'done',
  ): ReturnType<TestClient['client']['callTool']> =>
    client.client.callTool({
      name: 'complete',
      arguments: { uri, result },
      _meta: { 'agent/idempotency_key': key, 'agent/run_id': `run-${key}`, 'agent/instance': 'i-1' },
    });
  expect((await complete('inbox:///a.txt', 'k1')).structuredContent).toMatchObject({
    ok: true,
    replayed: false,
  });
  expect((await complete('inbox:///a.txt', 'k1', 'again')).structuredContent).toMatchObject({
    replayed: true,
  });
  expect((await complete('inbox:///a.txt', 'k2')).structuredContent).toMatchObject({ replayed: false });
  expect(await complete('inbox:///b.txt', 'k1')).toMatchObject({
    isError: true,
    structuredContent: { code: 'IDEMPOTENCY_CONFLICT' },
  });
  expect(await complete('inbox:///none.txt', 'k3')).toMatchObject({ isError: true });
  expect(readdirSync(join(inbox.folder, '.results'))).toHaveLength(2);
  expect(await listed(client)).toEqual(['inbox:///a.txt', 'inbox:///b.txt']);

  await inbox.stop();
  const again = await inbox.start();
  const answer = await again.client.callTool({ name: 'results', arguments: { uri: 'inbox:///a.txt' } });
  expect(answer.structuredContent).toMatchObject({
    total: 2,
    documents: 1,
    count: 2,
    results: [
      { uri: 'inbox:///a.txt', idempotency_key: 'k1', run_id: 'run-k1', instance: 'i-1', result: 'done' },
      { uri: 'inbox:///a.txt', idempotency_key: 'k2' },
    ],
  });
  const replay = await again.client.callTool({
    name: 'complete',
    arguments: { uri: 'inbox:///a.txt', result: 'x' },
    _meta: { 'agent/idempotency_key': 'k1' },
  });
  expect(replay.structuredContent).toMatchObject({ replayed: true });
});

test('a result for a document deleted meanwhile is kept', async () => {
  inbox.put('a.txt');
  const client = await inbox.start();
  unlinkSync(join(inbox.folder, 'a.txt'));
  await eventually('the deletion', async () => (await listed(client)).length === 0);
  const answer = await client.client.callTool({
    name: 'complete',
    arguments: { uri: 'inbox:///a.txt', result: 1 },
  });
  expect(answer.structuredContent).toMatchObject({ ok: true });
});

test('a results folder inside the inbox under a visible name is not served', async () => {
  inbox.put('a.txt');
  const client = await inbox.start({ results: join(inbox.folder, 'done') });
  await client.client.callTool({ name: 'complete', arguments: { uri: 'inbox:///a.txt', result: 'x' } });
  await inbox.rescan();
  inbox.put('b.txt');
  await eventually('a later document', async () => (await listed(client)).includes('inbox:///b.txt'));
  expect(await listed(client)).toEqual(['inbox:///a.txt', 'inbox:///b.txt']);
});

test('wrong arguments are answered so that a model can correct them', async () => {
  inbox.put('a.txt');
  const client = await inbox.start();
  const call = async (name: string, args: Record<string, unknown>): Promise<string> => {
    const answer = await client.client.callTool({ name, arguments: args });
    expect(answer.isError).toBe(true);
    return toolText(answer);
  };
  expect(await call('read', {})).toContain('uri');
  expect(await call('read', { uri: 'inbox:///a.txt', offset: -1 })).toContain('offset');
  expect(await call('complete', { uri: 'inbox:///a.txt' })).toContain('result');
  expect(await call('toString', {})).toContain('no tool toString');
  expect(await call('results', { cursor: 'x' })).toContain('cursor');
});

test('tools and their arguments are described, and list agrees with the resources', async () => {
  inbox.put('a.txt', '12345');
  const client = await inbox.start();
  const { tools } = await client.client.listTools();
  expect(tools.map((tool) => tool.name).sort()).toEqual(['complete', 'list', 'read', 'results']);
  expect(tools.find((tool) => tool.name === 'complete')?.inputSchema.required).toContain('uri');
  const answer = await client.client.callTool({ name: 'list', arguments: {} });
  expect(answer.structuredContent).toMatchObject({
    total: 1,
    documents: [{ uri: 'inbox:///a.txt', size: 5, mime_type: 'text/plain', results: 0 }],
  });
});
