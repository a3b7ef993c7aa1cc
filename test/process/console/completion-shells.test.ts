import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VERBS } from '../../../supervisor/cli/help-text.ts';
import { runVerb } from '../../helpers/run-verb.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];
const ZSH_OFFERS = fileURLToPath(new URL('../../fixtures/shells/offers.zsh', import.meta.url));
/** Names under which each shell looks for the script. */
const FILES = { bash: 'agentd.bash', zsh: '_agentd', fish: 'agentd.fish' } as const;
const PATIENCE_MS = 60_000;

let folder = '';
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'agentd-completion-'));
  writeFileSync(join(folder, 'one file.yaml'), '');
  for (const shell of SHELLS) {
    const { code, stdout } = await runVerb(['completion', shell]);
    expect(code).toBe(0);
    writeFileSync(join(folder, FILES[shell]), stdout);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a shell on nothing but its arguments, in the folder of the scripts. */
function run(program: string, args: readonly string[]): string {
  const { stdout, stderr, status, error } = spawnSync(program, args, {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '', HOME: folder, TERM: 'dumb', LC_ALL: 'C.UTF-8' },
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    timeout: PATIENCE_MS,
    killSignal: 'SIGKILL',
  });
  expect({ error, stderr, status }).toEqual({ error: undefined, stderr: '', status: 0 });
  return stdout;
}

/** What the shell itself offers for a command line whose last word is being completed. */
const OFFERS: Readonly<Record<Shell, (line: string) => string[]>> = {
  bash: (line) => {
    const words = line.split(' ').map((word) => `'${word}'`);
    const script = `source ./${FILES.bash}
[[ "$(complete -p agentd)" == "complete -F _agentd agentd" ]] || exit 9
COMP_WORDS=(${words.join(' ')}) COMP_CWORD=${words.length - 1}
_agentd
printf '%s\\n' "\${COMPREPLY[@]}"`;
    return lines(run('bash', ['--norc', '-c', script]));
  },
  zsh: (line) => lines(run('zsh', ['-f', ZSH_OFFERS, folder, line])),
  fish: (line) =>
    lines(run('fish', ['--no-config', '-c', `source ${FILES.fish}; complete -C '${line}'`])).map(
      (one) => one.split('\t')[0] ?? '',
    ),
};

function lines(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}

const installed = (shell: Shell): boolean => spawnSync(shell, ['--version']).error === undefined;
const missing = SHELLS.filter((shell) => !installed(shell));
if (missing.length > 0) {
  console.warn(
    `${missing.join(' and ')} not installed: completion there is not tried. scripts/ensure-shells.sh installs zsh and fish.`,
  );
}

describe.each(SHELLS)('completion in a real %s', (shell) => {
  const offered = (line: string): string[] => OFFERS[shell](line).sort();

  it.skipIf(!installed(shell))(`${shell} reads the script without a complaint`, () => {
    const check = { bash: ['-n'], zsh: ['-n'], fish: ['--no-execute'] }[shell];
    expect(run(shell, [...check, FILES[shell]])).toBe('');
  });

  it.skipIf(!installed(shell))(`${shell} offers verbs, then what the verb takes`, () => {
    expect(offered('agentd ')).toEqual(expect.arrayContaining([...Object.keys(VERBS), 'help']));
    expect(offered('agentd sup')).toEqual(['supervise']);
    expect(offered('agentd --aggre')).toEqual(['--aggregate-logs']);
    expect(offered('agentd inspect --ev')).toEqual(['--events']);
    expect(offered('agentd supervise --route x --claim-t')).toEqual(['--claim-ttl']);
    expect(offered('agentd help exit')).toEqual(['exit-codes']);
    expect(offered('agentd completion ')).toEqual(
      expect.arrayContaining(shell === 'bash' ? ['bash', 'fish', 'zsh', '--help'] : ['bash', 'fish', 'zsh']),
    );
  });

  it.skipIf(!installed(shell))(`${shell} offers the commands of a verb and their flags`, () => {
    expect(offered('agentd work ')).toEqual(expect.arrayContaining(['drop', 'list', 'requeue', 'submit']));
    expect(offered('agentd work submit --pri')).toEqual(['--priority']);
    expect(offered('agentd work submit a://b --depends')).toEqual(['--depends-on']);
    expect(offered('agentd work show --pri')).toEqual([]);
  });

  it.skipIf(!installed(shell))(`${shell} offers values that are known, files where one is meant`, () => {
    expect(offered('agentd work list --state d')).toEqual(['dead_letter', 'done']);
    expect(offered('agentd events --level w')).toEqual(['warn']);
    expect(offered('agentd supervise --mode s')).toEqual(['schedule']);
    expect(offered('agentd run x --log-format ')).toEqual(['json', 'text']);
    expect(offered('agentd supervise --config agentd.b')).toEqual(['agentd.bash']);
    expect(offered('agentd inbox agentd.f')).toEqual(['agentd.fish']);
    expect(offered('agentd supervise --model ')).toEqual([]);
  });
});
