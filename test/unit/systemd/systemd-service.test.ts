import { afterEach, describe, expect, it } from 'vitest';
import { type Readiness, readinessOf, STARTING } from '../../../supervisor/lifecycle/readiness.ts';
import type { ServiceManager } from '../../../supervisor/lifecycle/systemd-notify.ts';
import {
  announceFailure,
  announceServing,
  openService,
  serviceOver,
} from '../../../supervisor/lifecycle/systemd-service.ts';
import type { Health } from '../../../supervisor/surface/health.ts';
import { type DatagramReceiver, receiveDatagrams } from '../../helpers/datagram-receiver.ts';
import { eventually } from '../../helpers/eventually.ts';
import { ManualClock } from '../../helpers/manual-clock.ts';
import { nullLog } from '../../helpers/null-log.ts';

const RUNNING = {
  phase: 'running',
  paused: false,
  lameDuck: false,
  cannotSpawn: false,
  intelligenceAllDown: false,
  deaf: [],
} as const;

function recordingManager(watchdogMs: number | null): { manager: ServiceManager; told: string[] } {
  const told: string[] = [];
  const say =
    (what: string) =>
    (detail: string | number = ''): void => {
      told.push(`${what} ${detail}`.trim());
    };
  const manager: ServiceManager = {
    ready: say('ready:'),
    status: say('status:'),
    stopping: say('stopping:'),
    reloading: say('reloading'),
    watchdog: say('watchdog'),
    extendTimeout: say('extend'),
    watchdogMs,
    close: say('close'),
  };
  return { manager, told };
}

function recordingHealth(): { health: Health; beats: () => number; last: () => Readiness | null } {
  let beats = 0;
  let last: Readiness | null = null;
  const health: Health = {
    beat: () => {
      beats += 1;
    },
    setReadiness: (readiness) => {
      last = readiness;
    },
    url: 'http://127.0.0.1:1/',
    close: () => Promise.resolve(),
  };
  return { health, beats: () => beats, last: () => last };
}

describe('a supervisor as a service', () => {
  let receiver: DatagramReceiver | null = null;
  afterEach(() => {
    receiver?.close();
    receiver = null;
  });

  it('says how it comes up, works, reloads, drains', () => {
    const clock = new ManualClock();
    const { manager, told } = recordingManager(null);
    const { health: thread, last } = recordingHealth();
    const service = serviceOver(manager, clock);
    const health = service.over(thread);
    let drainLeftMs: number | null = null;
    service.observe(() => ({ running: 2, backlog: 7, drainLeftMs }));
    health.setReadiness(STARTING);
    health.setReadiness(readinessOf({ ...RUNNING, deaf: ['inbox', 'mail'] }));
    health.setReadiness(readinessOf(RUNNING));
    service.reloading();
    service.reloaded();
    drainLeftMs = 20_000;
    health.setReadiness(readinessOf({ ...RUNNING, phase: 'draining' }));
    service.close();
    expect(told).toEqual([
      'status: starting: connecting to its servers',
      'ready: not ready (deaf to inbox and mail), 2 running, backlog 7',
      'status: ready, 2 running, backlog 7',
      'reloading',
      'ready: ready, 2 running, backlog 7',
      'stopping: draining, 2 running, backlog 7, at most 20 s left',
      'extend 10000',
      'close',
    ]);
    expect(last()?.reasons).toEqual(['draining']);
    expect(health.url).toBe(thread.url);
  });

  it('feeds the watchdog from the beats of the reactor and from nothing else', () => {
    const clock = new ManualClock();
    const { manager, told } = recordingManager(4_000);
    const { health: thread, beats } = recordingHealth();
    const health = serviceOver(manager, clock).over(thread);
    const fed = (): number => told.filter((one) => one === 'watchdog').length;
    for (let i = 0; i < 100; i++) health.beat();
    expect(fed()).toBe(1);
    clock.advance(60_000);
    // Time alone feeds nothing: a wedged reactor does not beat.
    expect(fed()).toBe(1);
    health.beat();
    expect(fed()).toBe(2);
    expect(beats()).toBe(101);
  });

  it('leaves the health thread as it is where no manager listens', async () => {
    const { health } = recordingHealth();
    const service = await openService({}, new ManualClock(), nullLog);
    expect(service.over(health)).toBe(health);
    service.close();
  });

  it.runIf(process.platform === 'linux')('leaves the reason of its end behind', async () => {
    const target = `@agentd-failure-${process.pid}-${Date.now()}`;
    receiver = receiveDatagrams(target);
    await announceFailure({ NOTIFY_SOCKET: target }, 'agentd.yaml:3:1: unknown key');
    expect(receiver.take()).toEqual(['STATUS=ended: agentd.yaml:3:1: unknown key']);
    await announceFailure({}, 'nobody listens');
  });

  it.runIf(process.platform === 'linux')('a serving verb is ready, fed and stopping', async () => {
    const target = `@agentd-serving-${process.pid}-${Date.now()}`;
    receiver = receiveDatagrams(target);
    const env = { NOTIFY_SOCKET: target, WATCHDOG_USEC: '80000', WATCHDOG_PID: String(process.pid) };
    const stopping = await announceServing(env, nullLog, 'serving http://127.0.0.1:7411/mcp');
    const seen: string[] = [];
    await eventually('the watchdog to be fed', () => {
      seen.push(...(receiver?.take() ?? []));
      return seen.includes('WATCHDOG=1');
    });
    stopping();
    seen.push(...receiver.take());
    expect(seen[0]).toBe('READY=1\nSTATUS=serving http://127.0.0.1:7411/mcp');
    expect(seen.at(-1)).toBe('STOPPING=1\nSTATUS=stopping');
  });
});
