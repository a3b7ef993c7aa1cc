import {
  appendFileSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import { InboxHarness, listed, textOf } from '../../helpers/inbox-harness.ts';

let inbox: InboxHarness;
beforeEach(() => {
  inbox = new InboxHarness();
});
afterEach(() => inbox.dispose());

test('creating, changing and deleting are told to those who subscribed', async () => {
  inbox.put('old.txt');
  const client = await inbox.start();
  await client.client.subscribeResource({ uri: 'inbox:///old.txt' });
  await client.client.subscribeResource({ uri: 'inbox:///new.txt' });
  inbox.put('old.txt', 'changed');
  await eventually('the change', () => client.updated.includes('inbox:///old.txt'));
  expect(client.listChanges()).toBe(0);
  inbox.put('new.txt');
  await eventually('the new document', () => client.updated.includes('inbox:///new.txt'));
  await eventually('the list change', () => client.listChanges() === 1);
  unlinkSync(join(inbox.folder, 'old.txt'));
  await eventually('the deletion', () => client.listChanges() === 2);
  expect(await listed(client)).toEqual(['inbox:///new.txt']);
  expect(client.updated).toEqual(['inbox:///old.txt', 'inbox:///new.txt']);
});

test('a file renamed into place is one change, and its temporary name is never seen', async () => {
  inbox.put('doc.txt', 'one');
  const client = await inbox.start();
  await client.client.subscribeResource({ uri: 'inbox:///doc.txt' });
  for (const temporary of ['.doc.txt.swp', 'doc.txt.tmp', 'doc.txt~']) inbox.put(temporary, 'two');
  renameSync(join(inbox.folder, 'doc.txt.tmp'), join(inbox.folder, 'doc.txt'));
  await eventually('the change', () => client.updated.length > 0);
  expect(await textOf(client, 'inbox:///doc.txt')).toBe('two');
  await inbox.rescan();
  inbox.put('last.txt');
  await eventually('a later change', () => client.listChanges() === 1);
  expect(client.updated).toEqual(['inbox:///doc.txt']);
  expect(await listed(client)).toEqual(['inbox:///doc.txt', 'inbox:///last.txt']);
});

test('a file written bit by bit is announced when it is whole', async () => {
  const client = await inbox.start({
    settle: { quietMs: 1500, emptyQuietMs: 1500, maxWaitMs: 60_000, maxNewWaitMs: 60_000 },
  });
  await client.client.subscribeResource({ uri: 'inbox:///slow.txt' });
  inbox.put('slow.txt', '');
  for (let part = 0; part < 10; part++) {
    appendFileSync(join(inbox.folder, 'slow.txt'), `part ${part}\n`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await eventually('the announcement', () => client.updated.length > 0);
  expect(await textOf(client, 'inbox:///slow.txt')).toContain('part 9');
  expect(client.updated).toHaveLength(1);
});

test('whole folders moved in, renamed and removed are noticed, and so is what happens in them later', async () => {
  mkdirSync(join(inbox.base, 'batch/deep'), { recursive: true });
  for (const name of ['1.txt', '2.txt', 'deep/3.txt']) writeFileSync(join(inbox.base, 'batch', name), name);
  const client = await inbox.start();
  renameSync(join(inbox.base, 'batch'), join(inbox.folder, 'batch'));
  await eventually('the folder', async () => (await listed(client)).length === 3);
  inbox.put('batch/deep/4.txt');
  await eventually('a file in it', async () => (await listed(client)).includes('inbox:///batch/deep/4.txt'));
  renameSync(join(inbox.folder, 'batch'), join(inbox.folder, 'renamed'));
  await eventually('the new name', async () => {
    const uris = await listed(client);
    return uris.length === 4 && uris.every((uri) => uri.startsWith('inbox:///renamed/'));
  });
  inbox.put('renamed/deep/5.txt');
  await eventually('a file under the new name', async () => (await listed(client)).length === 5);
  rmSync(join(inbox.folder, 'renamed'), { recursive: true });
  await eventually('an empty inbox', async () => (await listed(client)).length === 0);
});

test('the folder may vanish and come back; what did not change is not announced', async () => {
  inbox.put('same.txt');
  inbox.put('other.txt');
  const client = await inbox.start({ rescanMs: 100 });
  for (const name of ['same', 'other', 'new'])
    await client.client.subscribeResource({ uri: `inbox:///${name}.txt` });
  renameSync(inbox.folder, join(inbox.base, 'away'));
  await eventually('the loss to be noticed', () => inbox.log.lines.some((line) => line.level === 'error'));
  await expect(client.client.readResource({ uri: 'inbox:///same.txt' })).rejects.toThrow(/cannot be read/);
  await expect(client.client.listResources()).rejects.toThrow(/cannot be read/);
  writeFileSync(join(inbox.base, 'away/other.txt'), 'changed');
  writeFileSync(join(inbox.base, 'away/new.txt'), 'new');
  renameSync(join(inbox.base, 'away'), inbox.folder);
  await eventually('the changes', () => client.updated.length === 2);
  expect(new Set(client.updated)).toEqual(new Set(['inbox:///other.txt', 'inbox:///new.txt']));
  expect(await listed(client)).toHaveLength(3);
  inbox.put('later.txt');
  await eventually('events after the return', async () => (await listed(client)).length === 4);
});

test('a change no event told of is found by the rescan', async () => {
  writeFileSync(join(inbox.base, 'inner.txt'), 'one');
  mkdirSync(join(inbox.folder, 'data'));
  inbox.put('data/target.txt', 'one');
  symlinkSync('data/target.txt', join(inbox.folder, 'link.txt'));
  const client = await inbox.start({ rescanMs: 100 });
  await client.client.subscribeResource({ uri: 'inbox:///link.txt' });
  // The link itself does not change, so the kernel reports nothing for it.
  inbox.put('data/target.txt', 'two, longer');
  await eventually('the change behind the link', () => client.updated.length === 1);
});

test('documents beyond the cap wait until others go', async () => {
  for (let index = 0; index < 10; index++) inbox.put(`${index}.txt`);
  const client = await inbox.start({ maxFiles: 10, rescanMs: 100 });
  inbox.put('late.txt');
  await eventually('the warning', () => inbox.log.lines.some((line) => line.level === 'error'));
  expect(await listed(client)).toHaveLength(10);
  unlinkSync(join(inbox.folder, '0.txt'));
  await eventually('the late document', async () => (await listed(client)).includes('inbox:///late.txt'));
  expect(await listed(client)).toHaveLength(10);
});
