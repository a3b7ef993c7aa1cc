import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  decodeName,
  documentPath,
  documentUri,
  isIgnoredName,
  printableName,
} from '../../../supervisor/inbox/document-uri.ts';

const segment = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 12 })
  .filter((text) => !/[/\0]/.test(text) && !isIgnoredName(text) && Buffer.from(text).toString() === text);

test('a path and its URI stand for each other, whatever is in the name', () => {
  fc.assert(
    fc.property(fc.array(segment, { minLength: 1, maxLength: 4 }), (segments) => {
      const path = segments.join('/');
      const uri = documentUri(path);
      expect(documentPath(uri)).toBe(path);
      expect(uri).toMatch(/^inbox:\/\/\/[\x21-\x7e]+$/);
    }),
  );
});

test('no URI leads out of the folder, to hidden files, or has a second spelling', () => {
  for (const uri of [
    'inbox:///../etc/passwd',
    'inbox:///a/../../etc/passwd',
    'inbox:///%2e%2e/etc/passwd',
    'inbox:///a%2f..%2f..%2fetc%2fpasswd',
    'inbox:////etc/passwd',
    'inbox:///a//b',
    'inbox:///a/',
    'inbox:///',
    'inbox:///.results/x.json',
    'inbox:///a/.hidden',
    'inbox:///a%00b',
    'inbox:///%ff',
    'inbox:///a b',
    'inbox:///%61',
    'inbox://host/a',
    'file:///etc/passwd',
  ]) {
    expect([uri, documentPath(uri)]).toEqual([uri, null]);
  }
});

test('hidden files and files still being written are no documents', () => {
  for (const name of [
    '',
    '.',
    '..',
    '.git',
    'a~',
    'a.tmp',
    'a.PART',
    'a.crdownload',
    '#a#',
    '.a.swp',
    'x.swp',
  ]) {
    expect([name, isIgnoredName(name)]).toEqual([name, true]);
  }
  for (const name of ['a', 'tmp', 'a.tmp.txt', 'parts.csv', 'a b', '#1.md', '…', 'swp']) {
    expect([name, isIgnoredName(name)]).toEqual([name, false]);
  }
});

test('a name that is not UTF-8 is no name, and is shown escaped', () => {
  const bytes = Buffer.from([0x62, 0xff, 0x0a, 0x61]);
  expect(decodeName(bytes)).toBeNull();
  expect(printableName(bytes)).toBe('b\\xff\\x0aa');
  expect(printableName('zwei\nZeilen 🎉')).toBe('zwei\\x0aZeilen 🎉');
});
