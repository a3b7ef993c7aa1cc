import { mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { InboxHarness, listed, textOf } from '../../helpers/inbox-harness.ts';
import { toolText } from '../../helpers/sdk-client.ts';

let inbox: InboxHarness;
beforeEach(() => {
  inbox = new InboxHarness();
});
afterEach(() => inbox.dispose());

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
  mkdirSync(join(inbox.folder, 'sub/deep'), { recursive: true });
  for (const name of names) inbox.put(name);
  const client = await inbox.start();
  const uris = await listed(client);
  expect(uris).toHaveLength(names.length);
  for (const uri of uris) expect(names).toContain(await textOf(client, uri));
  const { resources } = await client.client.listResources();
  expect(resources.find((resource) => resource.name === 'sub/deep/x.json')).toMatchObject({
    uri: 'inbox:///sub/deep/x.json',
    mimeType: 'application/json',
    size: 15,
    // Whole milliseconds: `mtime` rounds where a Date made of `mtimeMs` cuts.
    annotations: {
      lastModified: new Date(statSync(join(inbox.folder, 'sub/deep/x.json')).mtimeMs).toISOString(),
    },
    _meta: { size: 15, etag: expect.any(String) },
  });
});

test('a name that is not UTF-8 is left out with one warning that names it', async () => {
  inbox.put('fine.txt');
  writeFileSync(Buffer.concat([Buffer.from(`${inbox.folder}/bad-`), Buffer.from([0xff, 0xfe])]), 'x');
  const client = await inbox.start({ rescanMs: 50 });
  await inbox.rescan();
  await inbox.rescan();
  expect(await listed(client)).toEqual(['inbox:///fine.txt']);
  expect(inbox.log.lines.filter((line) => String(line.fields.msg).includes('bad-\\xff\\xfe'))).toHaveLength(
    1,
  );
});

test('text comes as text, bytes as base64, and nothing as nothing', async () => {
  const bytes = Buffer.from([0, 1, 2, 255]);
  inbox.put('image.png', bytes);
  inbox.put('empty.txt', '');
  inbox.put('no-extension', 'text all the same');
  const client = await inbox.start();
  const read = async (name: string): Promise<unknown> =>
    (await client.client.readResource({ uri: `inbox:///${name}` })).contents[0];
  expect(await read('image.png')).toMatchObject({ mimeType: 'image/png', blob: bytes.toString('base64') });
  expect(await read('empty.txt')).toMatchObject({ text: '', _meta: { size: 0 } });
  expect(await read('no-extension')).toMatchObject({ mimeType: 'text/plain', text: 'text all the same' });
});

test('a document too large to be read whole says so and can be paged through', async () => {
  const line = 'Grüße aus dem Maschinenraum 🎉\n';
  const text = line.repeat(Math.ceil((20 * 1024 * 1024) / Buffer.byteLength(line)));
  inbox.put('large.log', text);
  const client = await inbox.start();
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
  writeFileSync(join(inbox.base, 'secret.txt'), 'secret');
  symlinkSync(join(inbox.base, 'secret.txt'), join(inbox.folder, 'link.txt'));
  const client = await inbox.start();
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

test('a folder that cannot be served is a clear configuration error', async () => {
  writeFileSync(join(inbox.base, 'file'), '');
  const cases = [
    [join(inbox.base, 'none'), 'it does not exist'],
    [join(inbox.base, 'file'), 'it is not a folder'],
  ] as const;
  for (const [path, reason] of cases) {
    await expect(inbox.start({ folder: path })).rejects.toMatchObject({
      code: 'INBOX_FOLDER_UNUSABLE',
      exitCode: 2,
      message: `cannot serve the folder ${path}: ${reason}`,
    });
  }
  for (let index = 0; index < 11; index++) inbox.put(`${index}.txt`);
  await expect(inbox.start({ maxFiles: 10 })).rejects.toMatchObject({ code: 'INBOX_TOO_LARGE', exitCode: 2 });
});

test('thousands of documents are listed page by page, each once', async () => {
  for (let index = 0; index < 2500; index++) inbox.put(`${index}.txt`, '');
  const client = await inbox.start({ maxFiles: 3000 });
  const uris = await listed(client);
  expect(uris).toHaveLength(2500);
  expect(new Set(uris).size).toBe(2500);
});
