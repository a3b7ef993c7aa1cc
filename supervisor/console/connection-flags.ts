import type { Command } from 'commander';
import { AgentdError } from '../../protocol/errors.ts';
import { readHeaderSecret } from '../config/secret.ts';
import type { ManagementSource } from './endpoint.ts';

/** The flags of every verb that talks to running instances. */
export interface ConnectionFlags {
  readonly url?: readonly string[];
  readonly bearerFile?: string;
  readonly tlsCa?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** URLs separated by commas, where --url is not given. */
const URL_VARIABLE = 'AGENT_MANAGEMENT_URL';

/** Adds `--url` (repeatable) and what is needed to be let in. */
export function connectionOptions(command: Command): Command {
  return command
    .option(
      '--url <url>',
      `management surface of an instance (--serve-mcp); may be repeated [${URL_VARIABLE}]`,
      (url: string, earlier: readonly string[] | undefined) => [...(earlier ?? []), url],
    )
    .option('--bearer-file <path>', 'file of the bearer token to present')
    .option('--tls-ca <path>', 'PEM file of extra certificate authorities')
    .option('--cert <path>', 'PEM file of the client certificate to present')
    .option('--key <path>', 'PEM file of its key');
}

/**
 * The instances the flags name. Read again for each new connection, so that a token can rotate.
 *
 * @throws AgentdError USAGE, SECRET_UNREADABLE, SECRET_UNUSABLE (exit 2)
 */
export function sourcesOf(flags: ConnectionFlags, env: NodeJS.ProcessEnv): ManagementSource[] {
  const { bearerFile, tlsCa, cert, key } = flags;
  if ((cert === undefined) !== (key === undefined)) {
    throw new AgentdError('USAGE', '--cert and --key belong together');
  }
  const urls = (flags.url ?? (env[URL_VARIABLE] ?? '').split(',')).map((url) => url.trim());
  const named = urls.filter((url) => url !== '');
  if (named.length === 0) {
    throw new AgentdError('USAGE', 'there is no --url, so it is not known which instance is meant', {
      remedy: `Give --url with the URL of --serve-mcp, such as http://127.0.0.1:7420, or set ${URL_VARIABLE}.`,
    });
  }
  const bearer =
    bearerFile === undefined ? null : readHeaderSecret({ secret: 'file', path: bearerFile }, env);
  const tls = { ca: tlsCa ?? null, cert: cert ?? null, key: key ?? null };
  return named.map((url) => ({ url, bearer, tls }));
}

/**
 * The one instance of a verb that can mean only one.
 *
 * @throws AgentdError USAGE, SECRET_UNREADABLE, SECRET_UNUSABLE (exit 2)
 */
export function onlySourceOf(flags: ConnectionFlags, env: NodeJS.ProcessEnv): ManagementSource {
  const [source, ...more] = sourcesOf(flags, env);
  if (source === undefined || more.length > 0) {
    throw new AgentdError('USAGE', 'a handle belongs to one instance, but --url is given several times', {
      remedy: 'Give one --url; `agentd ps` shows which instance has the handle.',
    });
  }
  return source;
}
