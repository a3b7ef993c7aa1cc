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
