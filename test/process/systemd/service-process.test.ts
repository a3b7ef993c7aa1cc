import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AgentdProcess } from '../../../scripts/fleet/agentd-process.ts';
import { type DatagramReceiver, receiveDatagrams } from '../../helpers/datagram-receiver.ts';
import { eventually } from '../../helpers/eventually.ts';
import { supervisedBy } from '../../helpers/leftovers.ts';

const PROOF = fileURLToPath(new URL('../../../scripts/systemd/main.ts', import.meta.url));
const WATCHDOG_MS = 2_000;

describe.runIf(process.platform === 'linux')('agentd as a notify service', () => {
  let folder = '';
  let receiver: DatagramReceiver;
  let running: AgentdProcess | null = null;
  const told: string[] = [];
  const listen = (): string[] => {
    told.push(...receiver.take());
    return told;
  };
  const hear = (what: string | RegExp): Promise<string> =>
    eventually(`a datagram ${String(what)}`, () =>
      listen().find((one) => (typeof what === 'string' ? one.startsWith(what) : what.test(one))),
    );

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'agentd-service-'));
    receiver = receiveDatagrams(join(folder, 'notify'));
    told.length = 0;
  });
  afterEach(async () => {
    running?.kill('SIGKILL');
    await running?.exited;
    running = null;
    receiver.close();
    rmSync(folder, { recursive: true, force: true });
  });

  function start(playbook: string, ...args: string[]): AgentdProcess {
    writeFileSync(join(folder, 'playbook.yaml'), playbook);
    const intelligence = ['--intelligence', `script:${join(folder, 'playbook.yaml')}`];
    running = new AgentdProcess('agentd', [...args, ...intelligence, '--log-format', 'json'], {
      NOTIFY_SOCKET: join(folder, 'notify'),
      WATCHDOG_USEC: String(WATCHDOG_MS * 1_000),
    });
    return running;
  }

  it('says that it is ready, feeds the watchdog, counts its work, and extends its stop', async () => {
    const args = [
      'run',
      'x',
      '--mode',
      'loop',
      '--interval',
      '1h',
      '--warm-children',
      '1',
      '--drain-timeout',
      '20s',
    ];
    const process = start('turns:\n  - sleep: 3000\n  - final: done\n', ...args);
    expect(await hear('READY=1')).toMatch(/^READY=1\nSTATUS=ready, \d running, backlog \d$/);
    await hear('STATUS=ready, 1 running');
    const fed = listen().filter((one) => one === 'WATCHDOG=1').length;
    await eventually(
      'the watchdog to be fed again',
      () => listen().filter((one) => one === 'WATCHDOG=1').length > fed,
    );
    // Children cannot speak for the supervisor: they are not told where.
    for (const pid of supervisedBy(process.pid))
      expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).not.toContain('NOTIFY_SOCKET');
    process.kill('SIGTERM');
    expect(await hear('STOPPING=1')).toMatch(/^STOPPING=1\nSTATUS=draining, 1 running.*, at most 20 s left$/);
    expect(await hear('EXTEND_TIMEOUT_USEC=')).toBe('EXTEND_TIMEOUT_USEC=10000000');
    expect(await process.exited).toEqual({ code: 0, signal: null });
  });

  it('a refused configuration leaves its reason, and is never ready', async () => {
    const process = start('turns: []\n', 'run', 'x', '--shard', '9/4');
    expect(await process.exited).toEqual({ code: 2, signal: null });
    expect(await hear('STATUS=ended: ')).toContain('shard 9 does not exist among 4');
    expect(listen().some((one) => one.startsWith('READY'))).toBe(false);
  });

  it('a coordination server is ready when it listens', async () => {
    running = new AgentdProcess(
      'coordinate',
      [
        'coordinate',
        '--listen',
        'http://127.0.0.1:0',
        '--db',
        join(folder, 'ledger.sqlite'),
        '--log-format',
        'json',
      ],
      { NOTIFY_SOCKET: join(folder, 'notify'), WATCHDOG_USEC: String(WATCHDOG_MS * 1_000) },
    );
    expect(await hear('READY=1')).toMatch(/^READY=1\nSTATUS=serving http:\/\/127\.0\.0\.1:\d+\/mcp$/);
    await hear('WATCHDOG=1');
    running.kill('SIGTERM');
    await hear('STOPPING=1');
    expect(await running.exited).toEqual({ code: 0, signal: null });
  });

  it('the proof under a real systemd says what is missing where it cannot boot one', () => {
    const command = [process.execPath, '--import', import.meta.resolve('tsx'), PROOF];
    const asNobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--', ...command];
    const [file = '', ...args] = process.getuid?.() === 0 ? asNobody : command;
    const { status, stdout } = spawnSync(file, args, {
      encoding: 'utf8',
      env: { ...process.env, HOME: folder },
    });
    expect(stdout).toContain('systemd cannot be booted in a container here. Missing:');
    expect(stdout).toContain('root (mounting and namespaces');
    expect(status).toBe(3);
  });
});
