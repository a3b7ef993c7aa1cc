import { describe, expect, it } from 'vitest';
import { AgentdError } from '../../../protocol/errors.ts';
import type { Config } from '../../../supervisor/config/config.ts';
import { ConfigInForce } from '../../../supervisor/config/in-force.ts';
import type { LoadedConfig } from '../../../supervisor/config/load.ts';
import { Reload } from '../../../supervisor/lifecycle/reload.ts';
import { eventually } from '../../helpers/eventually.ts';
import { load, RUNNABLE } from '../../helpers/load-config.ts';
import { ManualClock } from '../../helpers/manual-clock.ts';
import { recordingLog } from '../../helpers/null-log.ts';
import { recordingMetrics } from '../../helpers/peer-harness.ts';

/** A reload whose parts are played by the test. */
async function bench() {
  const loaded = await load({ flags: RUNNABLE });
  const settings = new ConfigInForce(loaded.config);
  const { log, lines } = recordingLog();
  const { metrics, values } = recordingMetrics();
  const trace: string[] = [];
  const state = {
    next: loaded as LoadedConfig | Error,
    prepare: Promise.resolve(),
    draining: false,
    loads: 0,
  };
  const reload = new Reload({
    load: () => {
      state.loads++;
      return state.next instanceof Error ? Promise.reject(state.next) : Promise.resolve(state.next);
    },
    settings,
    prepare: async () => {
      trace.push('prepare');
      await state.prepare;
      return { commit: () => undefined, abandon: async () => void trace.push('abandon') };
    },
    apply: (config) => {
      trace.push('apply');
      settings.replace(config);
    },
    onReactor: (act) => act(),
    draining: () => state.draining,
    read: () => trace.push('read'),
    ended: () => trace.push('ended'),
    service: { reloading: () => trace.push('reloading'), reloaded: () => trace.push('reloaded') },
    clock: new ManualClock(),
    log,
    metrics,
  });
  const withSteps = (maxSteps: number): LoadedConfig => {
    const config: Config = { ...loaded.config, limits: { ...loaded.config.limits, maxSteps } };
    return { ...loaded, config };
  };
  const ended = (count: number): Promise<unknown> =>
    eventually(`end ${count}`, () => trace.filter((one) => one === 'ended').length === count);
  return { reload, settings, state, trace, lines, values, withSteps, ended };
}

describe('the order of a reload', () => {
  it('is read, connected, in force; and the service manager is told of both ends', async () => {
    const b = await bench();
    b.reload.started();
    b.state.next = b.withSteps(7);
    b.reload.request();
    await b.ended(1);
    expect(b.trace).toEqual(['reloading', 'prepare', 'apply', 'read', 'reloaded', 'ended']);
    expect(b.settings.generation).toBe(2);
    expect(b.settings.current().limits.maxSteps).toBe(7);
    expect(b.settings.lastReload).toMatchObject({ result: 'applied', reason: null });
  });

  it('waits for the start, and makes one of all that come while one is under way', async () => {
    const b = await bench();
    b.reload.request();
    expect(b.state.loads).toBe(0);
    let go = (): void => undefined;
    b.state.prepare = new Promise<void>((resolve) => {
      go = resolve;
    });
    b.state.next = b.withSteps(7);
    b.reload.started();
    await eventually('the preparation', () => b.trace.includes('prepare'));
    for (const steps of [8, 9, 10]) {
      b.state.next = b.withSteps(steps);
      b.reload.request();
    }
    go();
    await b.ended(2);
    expect(b.state.loads).toBe(2);
    expect(b.settings.current().limits.maxSteps).toBe(10);
    expect(b.settings.generation).toBe(3);
  });

  it('leaves everything as it is when anything fails on the way', async () => {
    const b = await bench();
    b.reload.started();
    b.state.next = new AgentdError('CONFIG_INVALID', 'a.yaml:3:1: nonsense');
    b.reload.request();
    await b.ended(1);
    b.state.next = b.withSteps(7);
    b.state.prepare = Promise.reject(new AgentdError('MCP_UNAVAILABLE', 'not there'));
    b.reload.request();
    await b.ended(2);
    expect(b.trace).not.toContain('apply');
    expect(b.settings.generation).toBe(1);
    expect(b.settings.lastReload).toMatchObject({ result: 'rejected', reason: 'not there' });
    expect(b.lines.filter(({ event }) => event === 'config.invalid').map(({ fields }) => fields.err)).toEqual(
      [
        { type: 'CONFIG_INVALID', message: 'a.yaml:3:1: nonsense' },
        { type: 'MCP_UNAVAILABLE', message: 'not there' },
      ],
    );
    expect(b.values.get('agent_config_reload_total{result=rejected}')).toBe(2);
  });

  it('gives up what it has connected when a drain begins meanwhile, and begins no other', async () => {
    const b = await bench();
    b.reload.started();
    let go = (): void => undefined;
    b.state.prepare = new Promise<void>((resolve) => {
      go = resolve;
    });
    b.state.next = b.withSteps(7);
    b.reload.request();
    await eventually('the preparation', () => b.trace.includes('prepare'));
    b.state.draining = true;
    go();
    await b.ended(1);
    b.reload.request();
    expect(b.trace).toEqual(['reloading', 'prepare', 'abandon', 'reloaded', 'ended']);
    expect(b.state.loads).toBe(1);
  });
});
