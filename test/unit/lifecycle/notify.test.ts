import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openServiceManager } from '../../../supervisor/lifecycle/systemd-notify.ts';
import { type DatagramReceiver, receiveDatagrams } from '../../helpers/datagram-receiver.ts';
import { nullLog, recordingLog } from '../../helpers/null-log.ts';

let folder: string;
let receiver: DatagramReceiver | null = null;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agentd-notify-'));
});
afterEach(() => {
  receiver?.close();
  receiver = null;
  rmSync(folder, { recursive: true, force: true });
});

const descriptors = (): number => readdirSync('/proc/self/fd').length;

describe.runIf(process.platform === 'linux')('the service manager', () => {
  it.each([
    ['a path', () => join(folder, 'notify')],
    ['an abstract socket', () => `@agentd-test-${process.pid}-${folder.slice(-6)}`],
  ])('is told on %s', async (_what, name) => {
    const target = name();
    receiver = receiveDatagrams(target);
    const manager = await openServiceManager({ NOTIFY_SOCKET: target }, nullLog);
    manager.ready('3 routes');
    manager.status('drain:\nstep 2');
    manager.watchdog();
    manager.extendTimeout(2_500);
    manager.reloading();
    manager.stopping('draining');
    manager.close();
    manager.status('after the end');
    expect(receiver.take()).toEqual([
      'READY=1\nSTATUS=3 routes',
      'STATUS=drain: step 2',
      'WATCHDOG=1',
      'EXTEND_TIMEOUT_USEC=2500000',
      expect.stringMatching(/^RELOADING=1\nMONOTONIC_USEC=\d+$/),
      'STOPPING=1\nSTATUS=draining',
    ]);
  });

  it('neither blocks nor throws when it does not read, or is gone, and leaves no descriptor', async () => {
    const target = join(folder, 'notify');
    receiver = receiveDatagrams(target);
    const manager = await openServiceManager({ NOTIFY_SOCKET: target }, nullLog);
    const before = descriptors();
    for (let i = 0; i < 2_000; i++) manager.watchdog();
    receiver.close();
    receiver = null;
    manager.watchdog();
    manager.close();
    manager.close();
    // The receiver's and the sender's are gone.
    expect(descriptors()).toBe(before - 2);
  });

  it('is nobody without NOTIFY_SOCKET', async () => {
    const manager = await openServiceManager({}, nullLog);
    manager.ready('');
    manager.close();
    expect(manager.watchdogMs).toBeNull();
  });

  it('is nobody, with a warning, where the address cannot be one', async () => {
    for (const target of ['vsock:2:1', 'relative', `/${'x'.repeat(108)}`]) {
      const { log, lines } = recordingLog();
      (await openServiceManager({ NOTIFY_SOCKET: target }, log)).ready('');
      expect(lines.map((line) => line.event)).toEqual(['config.warn']);
    }
  });

  it('expects a watchdog only from the process it names', async () => {
    const target = join(folder, 'notify');
    receiver = receiveDatagrams(target);
    const watchdog = async (env: NodeJS.ProcessEnv) => {
      const manager = await openServiceManager({ NOTIFY_SOCKET: target, ...env }, nullLog);
      manager.close();
      return manager.watchdogMs;
    };
    expect(await watchdog({ WATCHDOG_USEC: '20000000' })).toBe(20_000);
    expect(await watchdog({ WATCHDOG_USEC: '20000000', WATCHDOG_PID: String(process.pid) })).toBe(20_000);
    expect(await watchdog({ WATCHDOG_USEC: '20000000', WATCHDOG_PID: '1' })).toBeNull();
    expect(await watchdog({ WATCHDOG_USEC: '0' })).toBeNull();
  });
});
