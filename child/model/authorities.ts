import { readFileSync } from 'node:fs';
import type { SecureContext } from 'node:tls';
import { EXTRA_AUTHORITIES_VARIABLE } from '../../protocol/child-environment.ts';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';

/**
 * What connections to model endpoints trust beside the authorities Node comes with: null when that
 * is nothing. Parsing the authorities takes tens of milliseconds, so it is done once, and only where
 * TLS is spoken.
 *
 * @param tlsCa PEM file given with --tls-ca
 * @throws AgentdError INTELLIGENCE_UNREACHABLE when that file cannot be read
 */
export async function trustedContext(
  tlsCa: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<SecureContext | null> {
  const further = [extraAuthorities(env), tlsCa === undefined ? null : givenAuthorities(tlsCa)];
  const ca = further.filter((pem) => pem !== null);
  if (ca.length === 0) return null;
  const { createSecureContext, rootCertificates } = await import('node:tls');
  return createSecureContext({ ca: [...rootCertificates, ...ca] });
}

function givenAuthorities(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new AgentdError(
      'INTELLIGENCE_UNREACHABLE',
      `cannot read the certificate authorities of the model endpoint from ${path}: ${errorMessage(error)}`,
      { cause: error, remedy: 'Check the path given with --tls-ca.' },
    );
  }
}

/** As Node does with NODE_EXTRA_CA_CERTS, one that cannot be read is ignored with a warning. */
function extraAuthorities(env: NodeJS.ProcessEnv): Buffer | null {
  const path = env[EXTRA_AUTHORITIES_VARIABLE];
  if (path === undefined || path === '') return null;
  try {
    return readFileSync(path);
  } catch (error) {
    process.emitWarning(`ignoring the extra certificate authorities in ${path}: ${errorMessage(error)}`);
    return null;
  }
}
