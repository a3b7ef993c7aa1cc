import { EXTRA_AUTHORITIES_VARIABLE } from '../../protocol/child-environment.ts';

/** What a child may inherit: enough to run Node and reach a model, and no secret (invariant 9). */
const INHERITED = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'LANG',
  'LC_ALL',
  'TZ',
  'TMPDIR',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'HTTPS_PROXY',
  'https_proxy',
  'NO_PROXY',
  'no_proxy',
] as const;

/** The allow-listed part of `env`. Proxy settings with a password in them are left out. */
export function childEnvironment(env: NodeJS.ProcessEnv): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of INHERITED) {
    const value = env[name];
    if (value === undefined || value === '') continue;
    if (/proxy/i.test(name) && value.includes('@')) continue;
    kept[name] = value;
  }
  return kept;
}

/**
 * The environment of an agent's child. Node parses every certificate of NODE_EXTRA_CA_CERTS, and its
 * own, before it runs a line: twice the time of a whole start. So a child is given the path under
 * another name and reads the file with its first connection over TLS, if it makes one.
 */
export function agentEnvironment(env: NodeJS.ProcessEnv): Record<string, string> {
  const { NODE_EXTRA_CA_CERTS: authorities, ...kept } = childEnvironment(env);
  return authorities === undefined ? kept : { ...kept, [EXTRA_AUTHORITIES_VARIABLE]: authorities };
}
