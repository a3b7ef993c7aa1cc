import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { installPacked, type PackedInstall } from '../package/packed-install.ts';
import { SHARDS } from './machine.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));

/** A document takes the scripted model longer than the stop of its unit may. */
const STUBBORN = `turns:
  - tool: { name: inbox__read, arguments: { uri: "{{event.uri}}" } }
  - tool: { name: inbox__complete, arguments: { uri: "{{event.uri}}", result: "done" } }
  - sleep: 6000
  - final: "filed {{event.uri}}"
`;

/**
 * What the machine in the container finds: the packed package installed in /usr/local, the units and
 * the example configuration in /etc, and a playbook instead of a model.
 */
export async function stage(root: string, scratch: string): Promise<PackedInstall> {
  const installed = await installPacked(join(root, 'usr/local'), scratch);
  const etc = join(root, 'etc/agentd');
  await cp(join(installed.folder, 'systemd/etc/agentd'), etc, { recursive: true });
  await cp(join(HERE, 'playbook.yaml'), join(etc, 'playbook.yaml'));
  const example = await readFile(join(etc, 'agentd.env'), 'utf8');
  const environment = (playbook: string): string =>
    `${example}\nAGENT_INTELLIGENCE=script:/etc/agentd/${playbook}\n`;
  await writeFile(join(etc, 'agentd.env'), environment('playbook.yaml'));
  await writeFile(join(etc, 'stubborn.env'), environment('stubborn.yaml'));
  await writeFile(join(etc, 'stubborn.yaml'), STUBBORN);
  await writeFile(join(etc, 'bad.yaml'), 'agent:\n  instruction: x\nlimts:\n  deadline: 5m\n');

  const credentials = join(root, 'etc/credstore');
  await mkdir(credentials, { recursive: true, mode: 0o700 });
  await writeFile(join(credentials, 'agentd.coordinate-token'), 'proof-token\n', { mode: 0o600 });

  // `agentd units` puts the fleet's units in place, as on any machine; the template for partitions is
  // copied by hand. What this machine's own units would start stays out of the container.
  const units = join(root, 'etc/systemd/system');
  await mkdir(units, { recursive: true });
  const flags = ['units', '--shards', String(SHARDS), '--coordinate', '--inbox', '--write', units];
  await execa(installed.bin, flags);
  await cp(join(installed.folder, 'systemd/agentd@.service'), join(units, 'agentd@.service'));
  for (const unit of ['systemd-networkd.service', 'systemd-resolved.service', 'systemd-timesyncd.service']) {
    await mkdir(dirname(join(units, unit)), { recursive: true });
    await symlink('/dev/null', join(units, unit));
  }
  return installed;
}
