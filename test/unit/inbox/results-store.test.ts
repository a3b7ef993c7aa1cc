import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { NewResult } from '../../../supervisor/inbox/result-file.ts';
import { ResultsStore } from '../../../supervisor/inbox/results-store.ts';
import { nullLog, recordingLog } from '../../helpers/null-log.ts';

let folder: string;
const opened: ResultsStore[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agentd-results-'));
});
afterEach(() => {
  for (const one of opened.splice(0)) one.close();
  rmSync(folder, { recursive: true, force: true });
});

async function open(path: string, max: number, log = nullLog): Promise<ResultsStore> {
  const results = await ResultsStore.open(path, max, log);
  opened.push(results);
  return results;
}

const store = (max = 100): Promise<ResultsStore> => open(folder, max);
const input = (key: string, uri = 'inbox:///a%20b.md', result: unknown = 'done'): NewResult => ({
  uri,
  key,
  result,
});

test('a result is on disk, whole and with its origin, before it counts', async () => {
  const results = await store();
  const { head, replayed } = await results.file({ ...input('k'), runId: 'r', instance: 'i' });
  expect(replayed).toBe(false);
  const record: unknown = JSON.parse(readFileSync(join(folder, head.file), 'utf8'));
  expect(record).toMatchObject({
    uri: 'inbox:///a%20b.md',
    key: 'k',
    run_id: 'r',
    instance: 'i',
    result: 'done',
  });
  expect(readdirSync(folder)).toEqual([head.file]);
  expect(head.file).toMatch(/^a-b\.md\.[0-9a-f]{24}\.json$/);
});

test('a second call with a key returns the first outcome and writes nothing, also at the same time', async () => {
  const results = await store();
  const outcomes = await Promise.all(
    Array.from({ length: 20 }, (_, index) => results.file(input('k', 'inbox:///a', `attempt ${index}`))),
  );
  expect(outcomes.filter((outcome) => !outcome.replayed)).toHaveLength(1);
  expect(new Set(outcomes.map((outcome) => outcome.head.id)).size).toBe(1);
  expect(readdirSync(folder)).toHaveLength(1);
  expect(results.countFor('inbox:///a')).toBe(1);
});

test('distinct keys for one document are all kept, so duplicates can be counted', async () => {
  const results = await store();
  for (const key of ['k1', 'k2', 'k1', 'k3']) await results.file(input(key));
  expect(results.countFor('inbox:///a%20b.md')).toBe(3);
  expect([results.size, results.documentCount]).toEqual([3, 1]);
  expect(readdirSync(folder)).toHaveLength(3);
});

test('a key cannot file a result for a second document', async () => {
  const results = await store();
  await results.file(input('k', 'inbox:///a'));
  await expect(results.file(input('k', 'inbox:///b'))).rejects.toMatchObject({
    code: 'IDEMPOTENCY_CONFLICT',
  });
});

test('results and keys survive a restart, in the order they were filed', async () => {
  const before = await store();
  for (const key of ['k1', 'k2', 'k3']) await before.file(input(key, `inbox:///${key}`));
  writeFileSync(join(folder, '.tmp-torn'), '{"vers');
  before.close();
  const after = await store();
  expect(after.page(0, 10).heads.map((head) => head.key)).toEqual(['k1', 'k2', 'k3']);
  expect(readdirSync(folder)).toHaveLength(3);
  const { replayed } = await after.file(input('k2', 'inbox:///k2', 'other'));
  expect(replayed).toBe(true);
});

test('a file that is no result is skipped with a warning naming it', async () => {
  writeFileSync(join(folder, 'notes.json'), '{"mine": true}');
  writeFileSync(join(folder, 'torn.json'), '{"version":1,');
  const { log, lines } = recordingLog();
  const results = await open(folder, 10, log);
  expect(results.size).toBe(0);
  expect(lines.map((line) => line.fields.msg).sort()).toEqual([
    'skipped, it is no result: notes.json',
    'skipped, it is no result: torn.json',
  ]);
});

test('the results folder may vanish and is made anew, its parent may not', async () => {
  const parent = join(folder, 'parent');
  mkdirSync(parent);
  const results = await open(join(parent, 'results'), 10);
  rmSync(join(parent, 'results'), { recursive: true });
  expect((await results.file(input('k1'))).replayed).toBe(false);
  rmSync(parent, { recursive: true });
  await expect(results.file(input('k2'))).rejects.toMatchObject({ code: 'RESULT_NOT_STORED', kind: 'retry' });
  expect(results.size).toBe(1);
  mkdirSync(parent);
  expect((await results.file(input('k2'))).replayed).toBe(false);
});

test('the number of results is bounded, and a known key is still answered at the bound', async () => {
  const results = await store(2);
  await Promise.all([results.file(input('k1')), results.file(input('k2'))]);
  await expect(results.file(input('k3'))).rejects.toMatchObject({ code: 'RESULTS_FULL' });
  expect((await results.file(input('k1'))).replayed).toBe(true);
});

test('a results folder that cannot be used is a configuration error', async () => {
  writeFileSync(join(folder, 'file'), '');
  await expect(open(join(folder, 'file'), 10)).rejects.toMatchObject({
    code: 'INBOX_RESULTS_UNUSABLE',
    exitCode: 2,
  });
  // Root may write everywhere, so the second case is for other users only.
  if (process.getuid?.() !== 0) {
    mkdirSync(join(folder, 'locked'));
    chmodSync(join(folder, 'locked'), 0o500);
    await expect(open(join(folder, 'locked'), 10)).rejects.toMatchObject({ code: 'INBOX_RESULTS_UNUSABLE' });
  }
});

test('pages of results go on where the page before ended', async () => {
  const results = await store();
  for (const key of ['k1', 'k2', 'k3', 'k4', 'k5'])
    await results.file(input(key, `inbox:///${key === 'k3' ? 'x' : 'y'}`));
  const first = results.page(0, 2);
  expect(first.heads.map((head) => head.key)).toEqual(['k1', 'k2']);
  expect(results.page(first.next ?? 0, 9)).toMatchObject({
    heads: [{ key: 'k3' }, { key: 'k4' }, { key: 'k5' }],
    next: null,
  });
  expect(results.page(0, 9, 'inbox:///x').heads.map((head) => head.key)).toEqual(['k3']);
});

test('a results folder belongs to one inbox at a time, and leaves nothing in the folder', async () => {
  const first = await store();
  const unfinished = join(folder, '.tmp-of-the-first');
  writeFileSync(unfinished, '');
  await expect(store()).rejects.toMatchObject({ code: 'INBOX_RESULTS_LOCKED', exitCode: 2 });
  // The refused one has touched nothing, not even what looks like the leavings of a crash.
  expect(readdirSync(folder)).toEqual(['.tmp-of-the-first']);
  expect((await first.file(input('k1'))).replayed).toBe(false);
  first.close();
  expect((await (await store()).file(input('k1'))).replayed).toBe(true);
});

test('a results folder that was made anew is locked again, and left alone when another inbox has it', async () => {
  const path = join(folder, 'results');
  const results = await open(path, 10);
  rmSync(path, { recursive: true });
  await results.file(input('k1'));
  await expect(open(path, 10)).rejects.toMatchObject({ code: 'INBOX_RESULTS_LOCKED' });
});

test('a results folder that another inbox has made anew meanwhile is written to by that one alone', async () => {
  const path = join(folder, 'results');
  const first = await open(path, 10);
  rmSync(path, { recursive: true });
  const second = await open(path, 10);
  await second.file(input('k1'));
  await expect(first.file(input('k1'))).rejects.toMatchObject({ code: 'RESULT_NOT_STORED', kind: 'retry' });
  second.close();
  // Now it is free: what the other one filed there is known, and is not filed a second time.
  await first.file(input('k1'));
  await first.file(input('k2'));
  expect(readdirSync(path)).toHaveLength(2);
});

test('results filed at the same time after the folder has vanished are all kept', async () => {
  const path = join(folder, 'results');
  const results = await open(path, 100);
  rmSync(path, { recursive: true });
  const keys = Array.from({ length: 16 }, (_, index) => `k${index}`);
  await Promise.all(keys.map((key) => results.file(input(key))));
  expect(readdirSync(path)).toHaveLength(16);
});
