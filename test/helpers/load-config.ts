import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AgentdError } from '../../protocol/errors.ts';
import type { FlagValues } from '../../supervisor/config/flag-layers.ts';
import { type LoadedConfig, type LoadInput, loadConfig } from '../../supervisor/config/load.ts';

export interface Given {
  readonly flags?: FlagValues;
  readonly env?: Readonly<Record<string, string>>;
  /** Written into the working directory before loading; not passed as --config by itself. */
  readonly files?: Readonly<Record<string, string>>;
  readonly defaultMode?: LoadInput['defaultMode'];
  readonly terminal?: boolean;
  readonly purpose?: LoadInput['purpose'];
}

/** The least a run needs. */
export const RUNNABLE: FlagValues = { '--instruction': 'do it', '--intelligence': 'script:final' };

/** Loads a configuration in a working directory of its own, which is gone afterwards. */
export async function load(given: Given): Promise<LoadedConfig> {
  const cwd = mkdtempSync(join(tmpdir(), 'agentd-config-'));
  try {
    for (const [name, text] of Object.entries(given.files ?? {})) writeFileSync(join(cwd, name), text);
    return await loadConfig({
      flags: given.flags ?? {},
      env: given.env ?? {},
      cwd,
      defaultMode: given.defaultMode ?? 'once',
      terminal: given.terminal ?? false,
      purpose: given.purpose ?? 'run',
    });
  } finally {
    rmSync(cwd, { recursive: true });
  }
}

/** The error a configuration is refused with. */
export async function refusal(given: Given): Promise<AgentdError> {
  try {
    await load(given);
  } catch (error) {
    if (error instanceof AgentdError) return error;
    throw error;
  }
  throw new Error('the configuration was accepted');
}
