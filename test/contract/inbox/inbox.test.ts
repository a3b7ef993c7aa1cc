import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type InboxOptions, type RunningInbox, startInbox } from '../../../supervisor/inbox/run-inbox.ts';
import { eventually } from '../../helpers/eventually.ts';
import { recordingLog } from '../../helpers/null-log.ts';
import { connectSdkClient, type TestClient, toolText } from '../../helpers/sdk-client.ts';

let base: string;
let folder: string;
let inbox: RunningInbox | undefined;
const clients: TestClient[] = [];
const { log, lines } = recordingLog();

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'agentd-inbox-'));
  folder = join(base, 'in');
  mkdirSync(folder);
  lines.length = 0;
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  await inbox?.close(1000);
  inbox = undefined;
  rmSync(base, { recursive: true, force: true });
});

async function start(options: Partial<InboxOptions> = {}): Promise<TestClient> {
  inbox = await startInbox({
    folder,
    listen: 'http://127.0.0.1:0',
    results: null,
    maxFiles: 1000,
    log,
    ...options,
  });
  return connect();
}

async function connect(): Promise<TestClient> {
  const client = await connectSdkClient(inbox?.url ?? '');
  clients.push(client);
  return client;
}

const put = (path: string, content: string | Buffer = path): void =>
  writeFileSync(join(folder, path), content);

async function listed(client: TestClient): Promise<string[]> {
  const uris: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.client.listResources(cursor === undefined ? {} : { cursor });
    uris.push(...page.resources.map((resource) => resource.uri));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return uris;
}

const textOf = async (client: TestClient, uri: string): Promise<string> => {
  const [content] = (await client.client.readResource({ uri })).contents;
  return content !== undefined && 'text' in content ? String(content.text) : '(no text)';
};

test('documents are listed and read under names of every kind', async () => {
  const names = [
    'a b.md',
    `it's "quoted".txt`,
    'two\nlines.txt',
    'grüße 🎉.md',
    '100%.csv',
    'a?b#c.txt',
    'sub/deep/x.json',
  ];
  mkdirSync(join(folder, 'sub/deep'), { recursive: true });
  for (const name of names) put(name);
  const client = await start();
  const uris = await listed(client);
  expect(uris).toHaveLength(names.length);
  for (const uri of uris) expect(names).toContain(await textOf(client, uri));
  const { resources } = await client.client.listResources();
  expect(resources.find((resource) => resource.name === 'sub/deep/x.json')).toMatchObject({
    uri: 'inbox:///sub/deep/x.json',
    mimeType: 'application/json',
    size: 15,
    annotations: { lastModified: statSync(join(folder, 'sub/deep/x.json')).mtime.toISOString() },
    _meta: { size: 15, etag: expect.any(String) },
  });
});

test('a name that is not UTF-8 is left out with one warning that names it', async () => {
  put('fine.txt');
  writeFileSync(Buffer.concat([Buffer.from(`${folder}/bad-`), Buffer.from([0xff, 0xfe])]), 'x');
  const client = await start({ rescanMs: 50 });
  await inbox?.rescan();
  await inbox?.rescan();
  expect(await listed(client)).toEqual(['inbox:///fine.txt']);
  expect(lines.filter((line) => String(line.fields.msg).includes('bad-\\xff\\xfe'))).toHaveLength(1);
});

test('text comes as text, bytes as base64, and nothing as nothing', async () => {
  const bytes = Buffer.from([0, 1, 2, 255]);
  put('image.png', bytes);
  put('empty.txt', '');
  put('no-extension', 'text all the same');
  const client = await start();
  const read = async (name: string): Promise<unknown> =>
    (await client.client.readResource({ uri: `inbox:///${name}` })).contents[0];
  expect(await read('image.png')).toMatchObject({ mimeType: 'image/png', blob: bytes.toString('base64') });
  expect(await read('empty.txt')).toMatchObject({ text: '', _meta: { size: 0 } });
  expect(await read('no-extension')).toMatchObject({ mimeType: 'text/plain', text: 'text all the same' });
});

test('a document too large to be read whole says so and can be paged through', async () => {
  const line = 'Grüße aus dem Maschinenraum 🎉\n';
  const text = line.repeat(Math.ceil((20 * 1024 * 1024) / Buffer.byteLength(line)));
  put('large.log', text);
  const client = await start();
  await expect(client.client.readResource({ uri: 'inbox:///large.log' })).rejects.toThrow(
    /bytes, more than the 8388608 .* call the read tool with offset and length/,
  );
  let offset: number | undefined = 0;
  let joined = '';
  while (offset !== undefined) {
    const args: Record<string, unknown> = { uri: 'inbox:///large.log', offset, length: 1024 * 1024 };
    const answer = await client.client.callTool({ name: 'read', arguments: args });
    const page = answer.structuredContent as { offset: number; next_offset?: number };
    expect(page.offset).toBe(offset);
    joined += toolText(answer).replace(/\n\[bytes \d+ to \d+ of \d+[^\]]*\]$/, '');
    offset = page.next_offset;
  }
  expect(joined === text).toBe(true);
});

test('an unknown URI is -32002, and a link out of the folder is unknown', async () => {
  writeFileSync(join(base, 'secret.txt'), 'secret');
  symlinkSync(join(base, 'secret.txt'), join(folder, 'link.txt'));
  const client = await start();
  expect(await listed(client)).toEqual([]);
  for (const uri of [
    'inbox:///none',
    'inbox:///link.txt',
    'inbox:///../secret.txt',
    'inbox:///%2e%2e/secret.txt',
  ]) {
    await expect(client.client.readResource({ uri })).rejects.toMatchObject({ code: -32002 });
    const answer = await client.client.callTool({ name: 'read', arguments: { uri } });
    expect([answer.isError, toolText(answer)]).toEqual([true, expect.stringContaining(`cannot read ${uri}`)]);
  }
  await expect(client.client.subscribeResource({ uri: 'inbox:///../x' })).rejects.toMatchObject({
    code: -32002,
  });
});

test('creating, changing and deleting are told to those who subscribed', async () => {
  put('old.txt');
  const client = await start();
  await client.client.subscribeResource({ uri: 'inbox:///old.txt' });
  await client.client.subscribeResource({ uri: 'inbox:///new.txt' });
  put('old.txt', 'changed');
  await eventually('the change', () => client.updated.includes('inbox:///old.txt'));
  expect(client.listChanges()).toBe(0);
  put('new.txt');
  await eventually('the new document', () => client.updated.includes('inbox:///new.txt'));
  await eventually('the list change', () => client.listChanges() === 1);
  unlinkSync(join(folder, 'old.txt'));
  await eventually('the deletion', () => client.listChanges() === 2);
  expect(await listed(client)).toEqual(['inbox:///new.txt']);
  expect(client.updated).toEqual(['inbox:///old.txt', 'inbox:///new.txt']);
});

test('a file renamed into place is one change, and its temporary name is never seen', async () => {
  put('doc.txt', 'one');
  const client = await start();
  await client.client.subscribeResource({ uri: 'inbox:///doc.txt' });
  for (const temporary of ['.doc.txt.swp', 'doc.txt.tmp', 'doc.txt~']) put(temporary, 'two');
  renameSync(join(folder, 'doc.txt.tmp'), join(folder, 'doc.txt'));
  await eventually('the change', () => client.updated.length > 0);
  expect(await textOf(client, 'inbox:///doc.txt')).toBe('two');
  await inbox?.rescan();
  put('last.txt');
  await eventually('a later change', () => client.listChanges() === 1);
  expect(client.updated).toEqual(['inbox:///doc.txt']);
  expect(await listed(client)).toEqual(['inbox:///doc.txt', 'inbox:///last.txt']);
});

test('a file written bit by bit is announced when it is whole', async () => {
  const client = await start({
    settle: { quietMs: 1500, emptyQuietMs: 1500, maxWaitMs: 60_000, maxNewWaitMs: 60_000 },
  });
  await client.client.subscribeResource({ uri: 'inbox:///slow.txt' });
  put('slow.txt', '');
  for (let part = 0; part < 10; part++) {
    appendFileSync(join(folder, 'slow.txt'), `part ${part}\n`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await eventually('the announcement', () => client.updated.length > 0);
  expect(await textOf(client, 'inbox:///slow.txt')).toContain('part 9');
  expect(client.updated).toHaveLength(1);
});

test('whole folders moved in, renamed and removed are noticed, and so is what happens in them later', async () => {
  mkdirSync(join(base, 'batch/deep'), { recursive: true });
  for (const name of ['1.txt', '2.txt', 'deep/3.txt']) writeFileSync(join(base, 'batch', name), name);
  const client = await start();
  renameSync(join(base, 'batch'), join(folder, 'batch'));
  await eventually('the folder', async () => (await listed(client)).length === 3);
  put('batch/deep/4.txt');
  await eventually('a file in it', async () => (await listed(client)).includes('inbox:///batch/deep/4.txt'));
  renameSync(join(folder, 'batch'), join(folder, 'renamed'));
  await eventually('the new name', async () => {
    const uris = await listed(client);
    return uris.length === 4 && uris.every((uri) => uri.startsWith('inbox:///renamed/'));
  });
  put('renamed/deep/5.txt');
  await eventually('a file under the new name', async () => (await listed(client)).length === 5);
  rmSync(join(folder, 'renamed'), { recursive: true });
  await eventually('an empty inbox', async () => (await listed(client)).length === 0);
});

test('the folder may vanish and come back; what did not change is not announced', async () => {
  put('same.txt');
  put('other.txt');
  const client = await start({ rescanMs: 100 });
  for (const name of ['same', 'other', 'new'])
    await client.client.subscribeResource({ uri: `inbox:///${name}.txt` });
  renameSync(folder, join(base, 'away'));
  await eventually('the loss to be noticed', () => lines.some((line) => line.level === 'error'));
  await expect(client.client.readResource({ uri: 'inbox:///same.txt' })).rejects.toThrow(/cannot be read/);
  await expect(client.client.listResources()).rejects.toThrow(/cannot be read/);
  writeFileSync(join(base, 'away/other.txt'), 'changed');
  writeFileSync(join(base, 'away/new.txt'), 'new');
  renameSync(join(base, 'away'), folder);
  await eventually('the changes', () => client.updated.length === 2);
  expect(new Set(client.updated)).toEqual(new Set(['inbox:///other.txt', 'inbox:///new.txt']));
  expect(await listed(client)).toHaveLength(3);
  put('later.txt');
  await eventually('events after the return', async () => (await listed(client)).length === 4);
});

test('a change no event told of is found by the rescan', async () => {
  writeFileSync(join(base, 'inner.txt'), 'one');
  mkdirSync(join(folder, 'data'));
  put('data/target.txt', 'one');
  symlinkSync('data/target.txt', join(folder, 'link.txt'));
  const client = await start({ rescanMs: 100 });
  await client.client.subscribeResource({ uri: 'inbox:///link.txt' });
  // The link itself does not change, so the kernel reports nothing for it.
  put('data/target.txt', 'two, longer');
  await eventually('the change behind the link', () => client.updated.length === 1);
});

test('results are filed once per key, counted, and survive a restart', async () => {
  put('a.txt');
  put('b.txt');
  const client = await start();
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
  expect(readdirSync(join(folder, '.results'))).toHaveLength(2);
  expect(await listed(client)).toEqual(['inbox:///a.txt', 'inbox:///b.txt']);

  await inbox?.close(1000);
  const again = await start();
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
  put('a.txt');
  const client = await start();
  unlinkSync(join(folder, 'a.txt'));
  await eventually('the deletion', async () => (await listed(client)).length === 0);
  const answer = await client.client.callTool({
    name: 'complete',
    arguments: { uri: 'inbox:///a.txt', result: 1 },
  });
  expect(answer.structuredContent).toMatchObject({ ok: true });
});

test('a results folder inside the inbox under a visible name is not served', async () => {
  put('a.txt');
  const client = await start({ results: join(folder, 'done') });
  await client.client.callTool({ name: 'complete', arguments: { uri: 'inbox:///a.txt', result: 'x' } });
  await inbox?.rescan();
  put('b.txt');
  await eventually('a later document', async () => (await listed(client)).includes('inbox:///b.txt'));
  expect(await listed(client)).toEqual(['inbox:///a.txt', 'inbox:///b.txt']);
});

test('wrong arguments are answered so that a model can correct them', async () => {
  put('a.txt');
  const client = await start();
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
  put('a.txt', '12345');
  const client = await start();
  const { tools } = await client.client.listTools();
  expect(tools.map((tool) => tool.name).sort()).toEqual(['complete', 'list', 'read', 'results']);
  expect(tools.find((tool) => tool.name === 'complete')?.inputSchema.required).toContain('uri');
  const answer = await client.client.callTool({ name: 'list', arguments: {} });
  expect(answer.structuredContent).toMatchObject({
    total: 1,
    documents: [{ uri: 'inbox:///a.txt', size: 5, mime_type: 'text/plain', results: 0 }],
  });
});

test('a folder that cannot be served is a clear configuration error', async () => {
  writeFileSync(join(base, 'file'), '');
  const cases = [
    [join(base, 'none'), 'it does not exist'],
    [join(base, 'file'), 'it is not a folder'],
  ] as const;
  for (const [path, reason] of cases) {
    await expect(start({ folder: path })).rejects.toMatchObject({
      code: 'INBOX_FOLDER_UNUSABLE',
      exitCode: 2,
      message: `cannot serve the folder ${path}: ${reason}`,
    });
  }
  for (let index = 0; index < 11; index++) put(`${index}.txt`);
  await expect(start({ maxFiles: 10 })).rejects.toMatchObject({ code: 'INBOX_TOO_LARGE', exitCode: 2 });
});

test('documents beyond the cap wait until others go', async () => {
  for (let index = 0; index < 10; index++) put(`${index}.txt`);
  const client = await start({ maxFiles: 10, rescanMs: 100 });
  put('late.txt');
  await eventually('the warning', () => lines.some((line) => line.level === 'error'));
  expect(await listed(client)).toHaveLength(10);
  unlinkSync(join(folder, '0.txt'));
  await eventually('the late document', async () => (await listed(client)).includes('inbox:///late.txt'));
  expect(await listed(client)).toHaveLength(10);
});

test('thousands of documents are listed page by page, each once', async () => {
  for (let index = 0; index < 2500; index++) put(`${index}.txt`, '');
  const client = await start({ maxFiles: 3000 });
  const uris = await listed(client);
  expect(uris).toHaveLength(2500);
  expect(new Set(uris).size).toBe(2500);
});
