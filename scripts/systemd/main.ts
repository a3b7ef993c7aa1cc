import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { CHECKS } from './checks.ts';
import { Container, missingForBoot } from './container.ts';
import { Machine } from './machine.ts';
import { stage } from './stage.ts';

/**
 * The proof under a real systemd: boots one in a container, installs the packed package and its units
 * there, and shows what docs/systemd.md promises. Prints a transcript; exits 0 when everything holds,
 * 1 when something does not, and 3 when a systemd cannot be booted here.
 */

const CANNOT_BOOT = 3;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

async function main(only: RegExp): Promise<number> {
  await installNspawn();
  const missing = await missingForBoot();
  if (missing.length > 0) {
    say('systemd cannot be booted in a container here. Missing:');
    for (const one of missing) say(`  - ${one}`);
    say('The part that needs no boot runs in `npm test` (test/unit/systemd, test/process/systemd).');
    return CANNOT_BOOT;
  }
  const scratch = await mkdtemp(join(tmpdir(), 'agentd-proof-'));
  let container: Container | null = null;
  const takeAway = async (): Promise<void> => {
    await container?.close();
    await rm(scratch, { recursive: true, force: true });
  };
  // Also when somebody interrupts. Listeners for good: the loader that runs this script ends the process
  // at once where it finds none.
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => void takeAway().finally(() => process.exit(1)));
  try {
    const began = Date.now();
    container = await Container.boot(async (root) => {
      const installed = await stage(root, scratch);
      say(`packed    ${installed.files.length} files, ${Math.round(installed.tarballBytes / 1_024)} KiB`);
    });
    const version = await container.shell('systemctl --version | head -1; agentd --version; node --version');
    say(`booted    ${version.replaceAll('\n', ' · agentd ').replace(/agentd (v\d)/, 'node $1')}`);
    say(`          ${Date.now() - began} ms with packing and installing`);
    return await check(new Machine(container), only);
  } finally {
    await takeAway();
  }
}

async function check(machine: Machine, only: RegExp): Promise<number> {
  let failed = 0;
  for (const { name, run } of CHECKS.filter((one) => only.test(one.name))) {
    try {
      const seen = await run(machine);
      say(`ok        ${name}\n          ${seen.replaceAll('\n', '\n          ')}`);
    } catch (error) {
      failed += 1;
      say(`FAILED    ${name}`);
      for (let cause: unknown = error; cause instanceof Error; cause = cause.cause)
        say(`          ${cause.message}`);
      const { stdout } = await machine.container.run('journalctl', '-n', '25', '--no-pager', '-o', 'cat');
      say(stdout.replaceAll(/^/gm, '          | '));
    }
  }
  say(failed === 0 ? 'everything holds' : `${failed} of ${CHECKS.length} do not hold`);
  return failed === 0 ? 0 : 1;
}

/** The one tool a Debian with systemd does not always have. Other machines are told what is missing. */
async function installNspawn(): Promise<void> {
  const has = async (program: string): Promise<boolean> =>
    (await execa('sh', ['-c', `command -v ${program}`], { reject: false })).exitCode === 0;
  if ((await has('systemd-nspawn')) || !(await has('apt-get')) || process.getuid?.() !== 0) return;
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  const args = ['install', '-y', '-q', '--no-install-recommends', 'systemd-container'];
  const { exitCode, stderr } = await execa('apt-get', args, { env, reject: false, timeout: 180_000 });
  if (exitCode !== 0) say(`apt-get install systemd-container failed: ${stderr.split('\n').at(-1)}`);
}

const only = new RegExp(process.argv[2] ?? '');
if (CHECKS.some(({ name }) => only.test(name))) process.exitCode = await main(only);
else {
  say(`no check has a name that matches ${only}. There are:`);
  for (const { name } of CHECKS) say(`  ${name}`);
  process.exitCode = 2;
}
