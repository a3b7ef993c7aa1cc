import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readSlice, wholeCharacters } from '../../../supervisor/inbox/document-read.ts';
import { inspectPath, type ScanRules, scanFolder } from '../../../supervisor/inbox/folder-scan.ts';

let outside: string;
let root: string;
beforeEach(() => {
  outside = realpathSync(mkdtempSync(join(tmpdir(), 'agentd-read-')));
  root = join(outside, 'inbox');
  mkdirSync(root);
  writeFileSync(join(outside, 'secret'), 'secret');
});
afterEach(() => rmSync(outside, { recursive: true }));

function rules(): ScanRules {
  return {
    root,
    excluded: join(root, 'out'),
    maxFiles: 100,
    onFolder: () => undefined,
    onUndecodable: () => undefined,
  };
}

const document = (path: string): Parameters<typeof readSlice>[1] => ({
  uri: `inbox:///${path}`,
  path,
  state: { size: 0, mtimeMs: 0, ino: 0 },
});

test('links that leave the folder, special files and hidden places are neither listed nor read', async () => {
  mkdirSync(join(root, '.hidden'));
  mkdirSync(join(root, 'out'));
  mkdirSync(join(root, 'sub'));
  writeFileSync(join(root, '.hidden/x'), 'x');
  writeFileSync(join(root, 'out/result'), 'x');
  writeFileSync(join(root, 'sub/plain'), 'plain');
  symlinkSync(join(outside, 'secret'), join(root, 'leaves'));
  symlinkSync('/etc', join(root, 'folder-leaves'));
  symlinkSync('../inbox/.hidden/x', join(root, 'to-hidden'));
  symlinkSync('out/result', join(root, 'to-excluded'));
  symlinkSync('nowhere', join(root, 'dangling'));
  symlinkSync('.', join(root, 'cycle'));
  symlinkSync('sub/plain', join(root, 'stays'));
  execFileSync('mkfifo', [join(root, 'pipe')]);
  const found = await scanFolder(rules(), '');
  expect([...found.files.keys()].sort()).toEqual(['stays', 'sub/plain']);
  for (const path of ['leaves', 'to-hidden', 'to-excluded', 'dangling', 'pipe', 'folder-leaves/passwd']) {
    await expect(readSlice(rules(), document(path), 0, 100)).rejects.toMatchObject({
      code: 'DOCUMENT_UNKNOWN',
    });
  }
  expect((await readSlice(rules(), document('stays'), 0, 100)).bytes.toString()).toBe('plain');
});

test('a folder on the way that became a link out of the inbox gives nothing away', async () => {
  mkdirSync(join(outside, 'elsewhere'));
  writeFileSync(join(outside, 'elsewhere/file'), 'secret');
  symlinkSync(join(outside, 'elsewhere'), join(root, 'sub'));
  expect(await inspectPath(rules(), 'sub')).toBeNull();
  await expect(readSlice(rules(), document('sub/file'), 0, 100)).rejects.toMatchObject({
    code: 'DOCUMENT_UNKNOWN',
  });
});

test('a slice ends where the file does', async () => {
  writeFileSync(join(root, 'a'), '0123456789');
  const read = async (offset: number, limit: number): Promise<string> =>
    (await readSlice(rules(), document('a'), offset, limit)).bytes.toString();
  expect(await read(0, 4)).toBe('0123');
  expect(await read(8, 4)).toBe('89');
  expect(await read(50, 4)).toBe('');
  writeFileSync(join(root, 'empty'), '');
  expect((await readSlice(rules(), document('empty'), 0, 4)).bytes.length).toBe(0);
});

test('pages of text cut to whole characters join to the text, whatever the page size', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', maxLength: 60 }),
      fc.integer({ min: 4, max: 9 }),
      (text, size) => {
        const bytes = Buffer.from(text);
        const state = { size: bytes.length, mtimeMs: 0, ino: 0 };
        let joined = '';
        let offset = 0;
        while (offset < bytes.length) {
          const page = wholeCharacters({ bytes: bytes.subarray(offset, offset + size), offset, state });
          expect(page.offset).toBe(offset);
          expect(page.bytes.length).toBeGreaterThan(0);
          const part = page.bytes.toString();
          expect(part).not.toContain('\ufffd');
          joined += part;
          offset += page.bytes.length;
        }
        expect(joined).toBe(text);
      },
    ),
  );
});
