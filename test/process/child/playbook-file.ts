import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folders: string[] = [];

/** Writes a playbook to a file of its own; `script:` with its path. */
export function playbookFile(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'agentd-playbook-'));
  folders.push(folder);
  const path = join(folder, 'playbook.yaml');
  writeFileSync(path, text);
  return `script:${path}`;
}

/** Removes what {@link playbookFile} wrote. */
export function removePlaybooks(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}
