import { readFileSync } from 'node:fs';

/** Put in by the build; absent when run from sources. */
declare const __AGENTD_VERSION__: string | undefined;

/** The version of the package. */
export function agentdVersion(): string {
  if (typeof __AGENTD_VERSION__ === 'string') return __AGENTD_VERSION__;
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const { version } = manifest as { version: string };
  return version;
}
