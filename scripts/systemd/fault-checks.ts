import type { Check } from './check.ts';
import { until } from './container.ts';
import { holds, shard } from './machine.ts';

/** What happens when something goes wrong. Each leaves the fleet as it was. */
export const FAULT_CHECKS: readonly Check[] = [
  {
    name: 'kill -9 of a supervisor: restarted, its children gone, its items done',
    run: async (machine) => {
      await machine.submit(24);
      const unit = shard(1);
      const before = await machine.working(unit);
      const pids = await machine.processes(unit);
      await machine.systemctl('kill', '--kill-who=main', '--signal=KILL', unit);
      const after = await machine.reached(
        unit,
        'restarted',
        ({ active, restarts }) => active === 'active' && restarts === before.restarts + 1,
      );
      holds(after.mainPid !== before.mainPid, 'the supervisor is another process');
      holds((await machine.alive(pids)).length === 0, `none of the ${pids.length} old processes is left`);
      const { items } = await machine.finished();
      return `pid ${before.mainPid} → ${after.mainPid}, ${pids.length} old processes gone, ${items} documents done`;
    },
  },
  {
    name: 'a wedged reactor is caught by the watchdog and restarted',
    run: async (machine) => {
      const unit = shard(2);
      await machine.dropIn(unit, '[Service]\nWatchdogSec=5s\nRestartSec=500ms');
      await machine.systemctl('restart', unit);
      const before = await machine.state(unit);
      const cursor = await machine.now();
      await machine.systemctl('kill', '--kill-who=main', '--signal=USR1', unit);
      await until('the inspector to wedge it', 30_000, async () => {
        const { code } = await machine.container.beside('./inside.ts', 'wedge', '9229');
        return code === 0 ? true : undefined;
      });
      const began = Date.now();
      const after = await machine.reached(
        unit,
        'restarted',
        ({ active, mainPid }) => active === 'active' && mainPid !== before.mainPid && mainPid !== 0,
      );
      const said = (await machine.journal(unit, cursor)).find(({ text }) =>
        text.includes('Watchdog timeout'),
      );
      holds(said !== undefined, 'systemd says that it was the watchdog');
      return `"${said.text}"; back after ${Date.now() - began} ms as pid ${after.mainPid}`;
    },
  },
  {
    name: 'a stuck child is not the watchdog’s business',
    run: async (machine) => {
      const unit = shard(2);
      const before = await machine.state(unit);
      const child = (await machine.processes(unit)).find((pid) => pid !== before.mainPid);
      holds(child !== undefined, 'there is a (warm) child to stop');
      await machine.container.shell(`kill -STOP ${child}`);
      const deadline = Date.now() + 12_000;
      await until('more than two watchdog periods to pass', 30_000, async () =>
        Date.now() > deadline ? true : undefined,
      );
      const after = await machine.state(unit);
      await machine.container.shell(`kill -CONT ${child} 2>/dev/null || true`);
      holds(after.mainPid === before.mainPid && after.active === 'active', 'the supervisor still runs');
      await machine.dropIn(unit, '');
      await machine.systemctl('restart', unit);
      return `child ${child} stopped for 12 s with WatchdogSec=5s; the supervisor is still pid ${after.mainPid}`;
    },
  },
  {
    name: 'a drain that takes longer than TimeoutStopSec extends it',
    run: async (machine) => {
      const unit = shard(3);
      await machine.dropIn(
        unit,
        '[Service]\nTimeoutStopSec=2s\nEnvironment=AGENT_INTELLIGENCE=script:/etc/agentd/stubborn.yaml\nEnvironmentFile=\nEnvironmentFile=/etc/agentd/stubborn.env',
      );
      await machine.systemctl('restart', unit);
      await machine.submit(12);
      await machine.working(unit);
      const began = Date.now();
      const stopping = machine.systemctl('stop', unit);
      const status = await machine
        .reached(unit, 'draining', (state) => state.status.startsWith('draining'))
        .then((state) => state.status);
      await stopping;
      const took = Date.now() - began;
      const after = await machine.state(unit);
      holds(after.result === 'success' && after.exitStatus === 0, `exit 0: ${JSON.stringify(after)}`);
      holds(took > 2_500, `the stop took longer than TimeoutStopSec (${took} ms)`);
      await machine.dropIn(unit, '');
      await machine.systemctl('start', unit);
      return `${took} ms with TimeoutStopSec=2s, exit 0; "${status}"`;
    },
  },
  {
    name: 'a bad configuration: one clear sentence, and no restart loop',
    run: async (machine) => {
      const unit = shard(3);
      await machine.dropIn(
        unit,
        '[Service]\nEnvironment=AGENTD_CONFIG=/etc/agentd/bad.yaml\nRestartSec=100ms',
      );
      const cursor = await machine.now();
      await machine.container.run('systemctl', 'restart', unit);
      const after = await machine.reached(unit, 'failed', ({ active }) => active === 'failed');
      holds(after.exitStatus === 2 && after.restarts === 0, `exit 2 once: ${JSON.stringify(after)}`);
      holds(/bad\.yaml:3:1/.test(after.status), `the status says where: ${after.status}`);
      const lines = await machine.journal(unit, cursor);
      const invalid = lines.filter(({ event }) => event?.event === 'config.invalid');
      holds(invalid.length === 1 && invalid[0]?.priority === 3, 'one error line in the journal');
      await machine.dropIn(unit, '');
      await machine.systemctl('reset-failed', unit);
      await machine.systemctl('start', unit);
      return `exit 2, 0 restarts; status "${after.status}"`;
    },
  },
  {
    name: 'a shard whose fleet has no size is refused, once',
    run: async (machine) => {
      const unit = 'agentd-shard@7.service';
      await machine.dropIn(unit, '[Service]\nUnsetEnvironment=AGENT_SHARDS\nEnvironment=AGENT_SHARDS=');
      await machine.container.run('systemctl', 'start', unit);
      const after = await machine.reached(unit, 'failed', ({ active }) => active === 'failed');
      holds(after.exitStatus === 2 && after.restarts === 0, `exit 2 once: ${JSON.stringify(after)}`);
      await machine.dropIn(unit, '');
      await machine.systemctl('reset-failed', unit);
      return 'exit 2, 0 restarts';
    },
  },
];
