import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DocumentIndex } from '../../../supervisor/inbox/document-index.ts';
import type { FileState } from '../../../supervisor/inbox/folder-scan.ts';

const state = (size: number): FileState => ({ size, mtimeMs: 1, ino: 1 });

function pages(index: DocumentIndex, limit: number): string[][] {
  const all: string[][] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const page: ReturnType<DocumentIndex['page']> = index.page(cursor, limit);
    all.push(page.documents.map((document) => document.path));
    cursor = page.next;
  }
  return all;
}

test('the index tells created, changed and unchanged apart', () => {
  const index = new DocumentIndex();
  expect(index.set('a', state(1))).toBe('created');
  expect(index.set('a', state(1))).toBe('same');
  expect(index.set('a', state(2))).toBe('changed');
  expect(index.delete('a')).toBe(true);
  expect(index.delete('a')).toBe(false);
  expect(index.find('inbox:///a')).toBeUndefined();
  expect(index.knows('inbox:///a')).toBe(true);
  expect(index.knows('inbox:///b')).toBe(false);
});

test('pages cover everything that stays, once, in order, whatever comes and goes meanwhile', () => {
  const name = fc.constantFrom(...'abcdefghij', 'a/b', 'a/c', 'a-b', 'é', '🎉');
  const step = fc.record({ add: fc.boolean(), path: name });
  fc.assert(
    fc.property(fc.array(name), fc.array(step), fc.integer({ min: 1, max: 4 }), (initial, steps, limit) => {
      const index = new DocumentIndex();
      index.load(new Map(initial.map((path) => [path, state(1)])));
      const model = new Set(initial);
      for (const { add, path } of steps) {
        if (add) index.set(path, state(1));
        else index.delete(path);
        if (add) model.add(path);
        else model.delete(path);
      }
      const found = pages(index, limit);
      expect(found.flat()).toEqual([...model].sort((a, b) => (a < b ? -1 : 1)));
      expect(index.size).toBe(model.size);
      expect(index.below('a')).toEqual([...model].filter((path) => path.startsWith('a/')).sort());
    }),
  );
});
