import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { VERBS } from '../../../supervisor/cli/help-text.ts';
import { runVerb } from '../../helpers/run-verb.ts';

const script = async (shell: string): Promise<string> => {
  const { code, stdout } = await runVerb(['completion', shell]);
  expect(code).toBe(0);
  return stdout;
};

/** What a real bash offers for the words of a command line, the last one being completed. */
async function offered(...words: string[]): Promise<string[]> {
  const ask = `COMP_WORDS=(agentd ${words.map((word) => `'${word}'`).join(' ')})
COMP_CWORD=${words.length}
_agentd
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const input = `${await script('bash')}\n${ask}\n`;
  const { stdout, stderr, status } = spawnSync('bash', ['--norc', '-s'], { input, encoding: 'utf8' });
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  return stdout.split('\n').filter((line) => line !== '');
}

describe('completion', () => {
  it('offers verbs first, then the flags and commands of the verb', async () => {
    expect(await offered('')).toEqual(expect.arrayContaining([...Object.keys(VERBS), 'help', '--config']));
    expect(await offered('insp')).toEqual(['inspect']);
    expect(await offered('inspect', '--ev')).toEqual(['--events']);
    expect(await offered('work', '')).toEqual(expect.arrayContaining(['submit', 'requeue']));
    expect(await offered('work', 'submit', '--pri')).toEqual(['--priority']);
    expect(await offered('supervise', '--aggregate')).toEqual(['--aggregate-logs']);
    expect(await offered('help', 'exit')).toEqual(['exit-codes']);
  });

  it('offers values where they are known, files where a file is meant, and nothing else', async () => {
    expect(await offered('work', 'list', '--state', 'd')).toEqual(['done', 'dead_letter']);
    expect(await offered('events', '--level', 'w')).toEqual(['warn']);
    expect(await offered('completion', '')).toEqual(expect.arrayContaining(['bash', 'zsh', 'fish']));
    expect(await offered('supervise', '--config', 'package.j')).toEqual(['package.json']);
    expect(await offered('supervise', '--model', '')).toEqual([]);
  });

  it('covers every verb and quotes what the descriptions hold, for zsh and fish', async () => {
    const [zsh, fish] = [await script('zsh'), await script('fish')];
    for (const verb of Object.keys(VERBS)) {
      expect(zsh).toContain(`    ${verb})`);
      expect(fish).toContain(`-a ${verb} -d `);
    }
    expect(zsh).toMatch(/^#compdef agentd\n/);
    expect(fish).toMatch(/-l state -x -a 'submitted/);
    // Unbalanced quotes are what a description could break.
    for (const line of fish.split('\n'))
      expect((line.replaceAll("\\'", '').match(/'/g) ?? []).length % 2).toBe(0);
  });

  it('knows three shells', async () => {
    const { code, stderr } = await runVerb(['completion', 'csh']);
    expect(code).toBe(2);
    expect(stderr).toContain('bash, zsh, fish');
  });
});
