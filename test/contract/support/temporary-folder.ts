import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** A folder of one test file, removed after it. */
export interface TemporaryFolder {
  path(name: string): string;
  /** Writes a file and returns its path. */
  file(name: string, text: string): string;
  folder(name: string): string;
  /** Makes a symbolic link and returns its path. */
  link(name: string, to: string): string;
}

export function temporaryFolder(): TemporaryFolder {
  const folder = mkdtempSync(join(tmpdir(), 'agentd-contract-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const path = (name: string): string => join(folder, name);
  return {
    path,
    file: (name, text) => {
      writeFileSync(path(name), text);
      return path(name);
    },
    folder: (name) => {
      mkdirSync(path(name));
      return path(name);
    },
    link: (name, to) => {
      symlinkSync(to, path(name));
      return path(name);
    },
  };
}
