import koffi from 'koffi';

/** A unix datagram socket that only receives, as a service manager holds one. */
export interface DatagramReceiver {
  /** The datagrams that arrived since the last call. */
  take(): string[];
  close(): void;
}

/** @param name a path, or `@name` for the abstract namespace */
export function receiveDatagrams(name: string): DatagramReceiver {
  const libc = koffi.load(null);
  const socket = libc.func('int socket(int, int, int)');
  const bind = libc.func('int bind(int, const void *, uint32_t)');
  const recv = libc.func('intptr_t recv(int, _Out_ uint8_t *, size_t, int)');
  const close = libc.func('int close(int)');
  const path = name.startsWith('@') ? `\0${name.slice(1)}` : `${name}\0`;
  const address = Buffer.concat([Buffer.from([1, 0]), Buffer.from(path)]);
  const fd: number = socket(1, 2 | 0o2000000, 0);
  if (fd < 0 || bind(fd, address, address.length) !== 0)
    throw new Error(`cannot bind ${name}: ${koffi.errno()}`);
  return {
    take: () => {
      const taken: string[] = [];
      const buffer = Buffer.alloc(4096);
      for (;;) {
        const bytes = Number(recv(fd, buffer, buffer.length, 0x40));
        if (bytes < 0) return taken;
        taken.push(buffer.toString('utf8', 0, bytes));
      }
    },
    close: () => void close(fd),
  };
}
