import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CHILD_PROGRAM, DrivenChild, runStart } from '../../helpers/child-driver.ts';

const MARK_LENGTH = 64;
let folder = '';
let child: DrivenChild | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agentd-dist-'));
  cpSync(dirname(CHILD_PROGRAM), folder, { recursive: true });
});

afterEach(async () => {
  await child?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function completes(): Promise<void> {
  child = new DrivenChild({ command: [process.execPath, join(folder, 'child.js')] });
  child.send(runStart('script:final:works'));
  expect((await child.result()).result).toBe('works');
  expect(await child.exited).toEqual({ code: 0, signal: null });
  expect(child.stderr).toBe('');
}

describe('launcher and code cache', () => {
  test('the cache of the build is there, and V8 accepts it', async () => {
    const { wrap } = await import('node:module');
    const { Script } = await import('node:vm');
    const source = readFileSync(join(folder, 'child.cjs'), 'latin1');
    const cache = readFileSync(join(folder, 'child.cache'));
    expect(cache.toString('latin1', 0, MARK_LENGTH)).toBe(source.slice(-MARK_LENGTH - 1, -1));
    const script = new Script(wrap(source), { cachedData: cache.subarray(MARK_LENGTH) });
    expect(script.cachedDataRejected).toBe(false);
  });

  test('a child starts without a cache', async () => {
    rmSync(join(folder, 'child.cache'));
    await completes();
  });

  test('a child starts with a cache of another build', async () => {
    const path = join(folder, 'child.cache');
    writeFileSync(
      path,
      Buffer.concat([Buffer.alloc(MARK_LENGTH, '0'), readFileSync(path).subarray(MARK_LENGTH)]),
    );
    await completes();
  });

  test('a child starts with a cache that V8 rejects', async () => {
    const path = join(folder, 'child.cache');
    const mark = readFileSync(path).subarray(0, MARK_LENGTH);
    writeFileSync(path, Buffer.concat([mark, Buffer.from('no code cache at all')]));
    await completes();
  });

  test('a child starts with a cache cut short', async () => {
    const path = join(folder, 'child.cache');
    writeFileSync(path, readFileSync(path).subarray(0, 20));
    await completes();
  });
});
