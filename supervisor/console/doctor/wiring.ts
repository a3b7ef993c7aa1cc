import { accessSync, constants, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';
import { errorMessage } from '../../../protocol/errors.ts';
import type { Config } from '../../config/config.ts';
import { parseListenUrl } from '../../surface/listen-url.ts';
import { type Finding, fail, ok } from './finding.ts';

/** What of this machine a configuration uses: its ports and its folders. */

/** Whether each listener of the configuration can be opened now. */
export function checkPorts(config: Config): Promise<Finding[]> {
  const { serve, observability } = config;
  const wanted = [
    ...(serve === null ? [] : [['--serve-mcp', serve.url] as const]),
    ...(observability.metricsAddr === null
      ? []
      : [['--metrics-addr', `https://${observability.metricsAddr}`] as const]),
  ];
  return Promise.all(
    wanted.map(([flag, url]) => {
      const { host, port } = parseListenUrl(url);
      return checkPort(flag, host, port);
    }),
  );
}

/** @param port 0: any */
export async function checkPort(flag: string, host: string, port: number): Promise<Finding> {
  const check = `port ${port === 0 ? 'any' : port}`;
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port, exclusive: true }, resolve);
    });
    await new Promise((resolve) => server.close(resolve));
    return ok(check, `${host} is free for ${flag}`);
  } catch (error) {
    const taken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
    return fail(
      check,
      `${flag} cannot listen on ${host}:${port}: ${taken ? 'it is taken' : errorMessage(error)}`,
      taken
        ? 'Stop the process that holds it (`ss -ltnp`), or choose another port; 0 picks a free one.'
        : 'Choose an address of this machine and a port this user may open.',
    );
  }
}

/** Whether what the configuration writes can be written. */
export function checkFolders(config: Config, env: NodeJS.ProcessEnv): Finding[] {
  const { reportFile, healthFile } = config.observability;
  const wanted: readonly (readonly [string, string])[] = [
    ...(reportFile === null ? [] : [['--report-file', dirname(reportFile)] as const]),
    ...(healthFile === null ? [] : [['--health-file', dirname(healthFile)] as const]),
    ...(['STATE_DIRECTORY', 'RUNTIME_DIRECTORY'] as const).flatMap((name) =>
      // systemd separates several with colons.
      (env[name] ?? '')
        .split(':')
        .filter((folder) => folder !== '')
        .map((folder) => [name, folder] as const),
    ),
    ['temporary files', tmpdir()],
  ];
  return wanted.map(([what, folder]) => checkFolder(what, folder));
}

export function checkFolder(what: string, folder: string): Finding {
  try {
    if (!statSync(folder).isDirectory()) throw new Error('it is not a folder');
    accessSync(folder, constants.W_OK | constants.X_OK);
    return ok('folder', `${folder} is writable (${what})`);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null;
    const reason =
      code === 'ENOENT' ? 'it does not exist' : code === 'EACCES' ? 'permission denied' : errorMessage(error);
    return fail(
      'folder',
      `${folder} cannot be written (${what}): ${reason}`,
      'Create it and give it to this user (mkdir -p, chown), or name another one.',
    );
  }
}
