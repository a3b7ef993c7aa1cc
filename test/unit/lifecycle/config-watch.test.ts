import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigWatch } from '../../../supervisor/lifecycle/config-watch.ts';
import { eventually } from '../../helpers/eventually.ts';
import { recordingLog } from '../../helpers/null-log.ts';

let folder = '';
let changes = 0;
let watch: ConfigWatch;
const { log, lines } = recordingLog();
const at = (name: string): string => join(folder, name);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentd-watch-'));
  changes = 0;
  watch = new ConfigWatch(() => changes++, log, 20);
});

afterEach(async () => {
  watch.close();
  await rm(folder, { recursive: true, force: true });
});

const changed = (count: number): Promise<unknown> => eventually(`change ${count}`, () => changes === count);

describe('a watch on configuration files', () => {
  it('sees a file written in place and one that takes its place, again and again', async () => {
    await writeFile(at('a'), '1');
    await watch.watch([at('a')]);
    await writeFile(at('a'), '2');
    await changed(1);
    for (const turn of [2, 3]) {
      await writeFile(at('a.new'), `content ${turn}`);
      await rename(at('a.new'), at('a'));
      await changed(turn);
    }
    await rm(at('a'));
    await changed(4);
    await writeFile(at('a'), 'back');
    await changed(5);
  });

  it('follows a link to a folder that is swapped, and the folder behind it', async () => {
    for (const version of ['1', '2']) {
      await mkdir(at(version));
      await writeFile(join(at(version), 'a'), version);
    }
    await symlink('1', at('data'));
    await symlink(join('data', 'a'), at('a'));
    await watch.watch([at('a')]);
    await symlink('2', at('next'));
    await rename(at('next'), at('data'));
    await changed(1);
    await writeFile(join(at('2'), 'a'), 'changed where it is');
    await changed(2);
  });

  it('calls for nothing when the content is the same or another file has changed', async () => {
    await writeFile(at('a'), '1');
    await watch.watch([at('a')]);
    // Told of the same events, and later: when it has seen them, so has the other.
    let witnessed = 0;
    const witness = new ConfigWatch(() => witnessed++, log, 60);
    await witness.watch([at('beside'), at('a.new')]);
    try {
      await writeFile(at('beside'), 'x');
      await eventually('the file beside', () => witnessed === 1);
      await writeFile(at('a.new'), '1');
      await eventually('the new file', () => witnessed === 2);
      await rename(at('a.new'), at('a'));
      await eventually('the new file to be gone', () => witnessed === 3);
      expect(changes).toBe(0);
    } finally {
      witness.close();
    }
  });

  it('says so once when a folder cannot be watched', async () => {
    await watch.watch([join(folder, 'missing', 'a'), join(folder, 'missing too', 'a')]);
    expect(lines.filter(({ event }) => event === 'config.warn')).toHaveLength(1);
  });
});
