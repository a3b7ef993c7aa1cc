import { buildConnector } from 'undici';
import type { ModelTarget } from '../../protocol/frames.ts';
import { trustedContext } from './authorities.ts';
import { HeldConnection } from './held-connection.ts';

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * What opens connections to model endpoints.
 *
 * @param speaksTls whether any endpoint does; a file of authorities that was named is read anyhow
 * @throws AgentdError INTELLIGENCE_UNREACHABLE when the file of authorities cannot be read
 */
export async function modelConnector(
  tlsCa: string | undefined,
  speaksTls: boolean,
  timeoutMs: number,
): Promise<buildConnector.connector> {
  const secureContext = speaksTls || tlsCa !== undefined ? await trustedContext(tlsCa, process.env) : null;
  return buildConnector({
    timeout: Math.min(CONNECT_TIMEOUT_MS, timeoutMs),
    ...(secureContext === null ? {} : { secureContext }),
  });
}

export interface HeldConnector {
  readonly connect: buildConnector.connector;
  /** Whether the held one has been used. */
  readonly used: () => boolean;
}

/** A connector whose first connection is the held one, if that leads to the right endpoint; else it is closed. */
export function withHeld(connect: buildConnector.connector, first: HeldConnection | null): HeldConnector {
  let spare = first;
  let used = false;
  const connectFirst: buildConnector.connector = (target, callback) => {
    const held = spare;
    spare = null;
    if (held !== null && !isOrigin(target, held.origin)) held.close();
    const socket = held?.take() ?? null;
    if (socket === null) connect(target, callback);
    else {
      used = true;
      queueMicrotask(() => callback(null, socket));
    }
  };
  return { connect: connectFirst, used: () => used };
}

/** @throws AgentdError INTELLIGENCE_UNREACHABLE when the file of authorities cannot be read */
export async function holdConnection(
  { origin, tls_ca: tlsCa }: ModelTarget,
  changed: (open: boolean) => void,
): Promise<HeldConnection> {
  const connect = await modelConnector(tlsCa, origin.startsWith('https:'), CONNECT_TIMEOUT_MS);
  return new HeldConnection(origin, connect, changed, () => performance.now());
}

function isOrigin({ protocol, hostname, port }: buildConnector.Options, origin: string): boolean {
  const url = new URL(origin);
  return protocol === url.protocol && hostname === url.hostname.replace(/^\[|\]$/g, '') && port === url.port;
}
