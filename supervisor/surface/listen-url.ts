import { AgentdError } from '../../protocol/errors.ts';

/** Where a listener listens, taken from its URL. */
export interface ListenAddress {
  readonly secure: boolean;
  /** As node:net takes it: no brackets around IPv6. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

const LOOPBACK_V4 = /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/;

/** Whether a host name (no brackets, no port) can only mean this machine. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase();
  return name === 'localhost' || name === '::1' || LOOPBACK_V4.test(name);
}

/**
 * Reads the URL of a listener. http:// is for loopback only (contract, section 10).
 *
 * @throws AgentdError LISTEN_REFUSED
 */
export function parseListenUrl(text: string): ListenAddress {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new AgentdError('LISTEN_REFUSED', `cannot listen on "${text}": not a URL`, {
      remedy: 'Write it as http://127.0.0.1:PORT or https://HOST:PORT.',
    });
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new AgentdError('LISTEN_REFUSED', `cannot listen on "${text}": ${url.protocol}// is not served`, {
      remedy: 'Write it as http://127.0.0.1:PORT or https://HOST:PORT.',
    });
  }
  if (url.username !== '' || url.password !== '') {
    // Not echoed: the text holds a credential (invariant 9).
    throw new AgentdError('LISTEN_REFUSED', 'cannot listen on a URL that carries a user name or password', {
      remedy: 'Configure a bearer token or a client certificate authority instead.',
    });
  }
  const secure = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  if (!secure && !isLoopback(host)) {
    throw new AgentdError(
      'LISTEN_REFUSED',
      `cannot listen on ${url.origin}: http:// is only allowed on loopback`,
    );
  }
  const fallback = secure ? 443 : 80;
  return { secure, host, port: url.port === '' ? fallback : Number(url.port) };
}

/** The URL of a listener at the port it really has. */
export function formatListenUrl(address: ListenAddress, port: number): string {
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  return `${address.secure ? 'https' : 'http'}://${host}:${port}`;
}
