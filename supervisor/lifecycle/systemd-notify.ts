import { endianness } from 'node:os';
import type { Log } from '../telemetry/log.ts';

/**
 * sd_notify(3): what the service manager is told. Datagrams are sent without waiting; one that cannot
 * be delivered is dropped, since the manager has time limits of its own.
 */
export interface ServiceManager {
  /** Start-up or a reload is over. */
  ready(status: string): void;
  status(text: string): void;
  stopping(status: string): void;
  reloading(): void;
  watchdog(): void;
  /** Asks for at least `ms` more before a start or stop counts as failed. */
  extendTimeout(ms: number): void;
  /** How often `watchdog` is expected at the latest, ms; null when it is not. */
  readonly watchdogMs: number | null;
  close(): void;
}

const NONE: ServiceManager = {
  ready: () => {},
  status: () => {},
  stopping: () => {},
  reloading: () => {},
  watchdog: () => {},
  extendTimeout: () => {},
  watchdogMs: null,
  close: () => {},
};

/** sizeof(sun_path) on Linux, bytes. */
const MAX_PATH = 108;
const MAX_STATUS = 512;

/**
 * Opens the way to the service manager that NOTIFY_SOCKET names. Without one, on a platform without
 * one, or when it cannot be used, every call does nothing.
 *
 * @param log null where nobody is left to be warned
 */
export async function openServiceManager(env: NodeJS.ProcessEnv, log: Log | null): Promise<ServiceManager> {
  const target = env.NOTIFY_SOCKET ?? '';
  if (target === '' || process.platform !== 'linux') return NONE;
  const address = socketAddress(target);
  if (address === null) {
    log?.warn('config.warn', { msg: `NOTIFY_SOCKET "${target}" is neither a path nor an abstract socket` });
    return NONE;
  }
  try {
    const socket = await openDatagramSocket();
    return managerOver(
      (text) => socket.send(text, address),
      () => socket.close(),
      watchdogMs(env),
    );
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    log?.warn('config.warn', { msg: `the service manager cannot be told anything: ${message}` });
    return NONE;
  }
}

function managerOver(
  send: (text: string) => void,
  close: () => void,
  watchdog: number | null,
): ServiceManager {
  const status = (text: string): string => `STATUS=${text.replace(/\s+/g, ' ').slice(0, MAX_STATUS)}`;
  return {
    ready: (text) => send(`READY=1\n${status(text)}`),
    status: (text) => send(status(text)),
    stopping: (text) => send(`STOPPING=1\n${status(text)}`),
    reloading: () => send(`RELOADING=1\nMONOTONIC_USEC=${process.hrtime.bigint() / 1_000n}`),
    watchdog: () => send('WATCHDOG=1'),
    extendTimeout: (ms) => send(`EXTEND_TIMEOUT_USEC=${Math.max(0, Math.ceil(ms)) * 1_000}`),
    watchdogMs: watchdog,
    close,
  };
}

/** WATCHDOG_USEC, unless WATCHDOG_PID says that it is meant for another process. */
function watchdogMs(env: NodeJS.ProcessEnv): number | null {
  const usec = env.WATCHDOG_USEC ?? '';
  const pid = env.WATCHDOG_PID ?? '';
  if (!/^[1-9]\d{0,15}$/.test(usec) || (pid !== '' && pid !== String(process.pid))) return null;
  return Number(usec) / 1_000;
}

/** A sockaddr_un: `/path`, or `@name` for the abstract namespace. */
function socketAddress(target: string): Buffer | null {
  const abstract = target.startsWith('@');
  if (!abstract && !target.startsWith('/')) return null;
  const path = abstract
    ? Buffer.concat([Buffer.of(0), Buffer.from(target.slice(1))])
    : Buffer.concat([Buffer.from(target), Buffer.of(0)]);
  if (path.length > MAX_PATH) return null;
  const AF_UNIX = 1;
  const family = Buffer.from(endianness() === 'LE' ? [AF_UNIX, 0] : [0, AF_UNIX]);
  return Buffer.concat([family, path]);
}

interface DatagramSocket {
  send(text: string, address: Buffer): void;
  close(): void;
}

/** Node has no unix datagram sockets; the C library has. Loaded only here. */
async function openDatagramSocket(): Promise<DatagramSocket> {
  const { default: koffi } = await import('koffi');
  const libc = koffi.load(null);
  const socket = libc.func('int socket(int domain, int type, int protocol)');
  const sendto = libc.func(
    'intptr_t sendto(int fd, const void *buf, size_t len, int flags, const void *addr, uint32_t addrlen)',
  );
  const close = libc.func('int close(int fd)');
  const AF_UNIX = 1;
  const SOCK_DGRAM = 2;
  const SOCK_CLOEXEC = 0o2000000;
  const MSG_DONTWAIT = 0x40;
  const MSG_NOSIGNAL = 0x4000;
  const fd: number = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw new Error(`no datagram socket (errno ${koffi.errno()})`);
  let open = true;
  return {
    send: (text, address) => {
      if (!open) return;
      const bytes = Buffer.from(text);
      sendto(fd, bytes, bytes.length, MSG_DONTWAIT | MSG_NOSIGNAL, address, address.length);
    },
    close: () => {
      if (open) close(fd);
      open = false;
    },
  };
}
