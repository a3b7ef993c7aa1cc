import { until } from './container.ts';
import { ALL_SHARDS, holds, type Machine, SHARDS, shard } from './machine.ts';

/** One claim about agentd under systemd, shown on the running machine. */
export interface Check {
  readonly name: string;
  /** @returns what was seen, in one line @throws Error when it does not hold */
  readonly run: (machine: Machine) => Promise<string>;
}

const SERVICES = [...ALL_SHARDS, 'agentd-coordinate.service', 'agentd-inbox.service'];

export const CHECKS: readonly Check[] = [
  {
    name: 'systemd-analyze verify is clean',
    run: async ({ container }) => {
      const units = [...SERVICES, 'agentd@invoices.service', 'agentd.target'];
      const { code, stderr } = await container.run('systemd-analyze', 'verify', '--man=no', ...units);
      const ours = stderr.split('\n').filter((line) => line.includes('agentd'));
      holds(code === 0 && ours.length === 0, `no complaint: ${ours.join(' · ')}`);
      return `${units.length} units, no complaint`;
    },
  },
  {
    name: 'agentd units finds nothing missing',
    run: async ({ container }) => {
      const args = ['units', '--shards', String(SHARDS), '--coordinate', '--inbox'];
      const { code, stdout, stderr } = await container.run('agentd', ...args, '--write', UNITS, '--check');
      holds(code === 0, `exit 0: ${stderr.trim()}`);
      return stdout.trim();
    },
  },
  {
    name: 'the target starts the fleet, and every unit says that it is ready',
    run: async (machine) => {
      const began = Date.now();
      await machine.systemctl('start', 'agentd.target');
      for (const unit of SERVICES) await machine.reached(unit, 'active', ({ active }) => active === 'active');
      const { status } = await machine.reached(shard(0), 'ready', (state) =>
        state.status.startsWith('ready'),
      );
      const coordinate = await machine.state('agentd-coordinate.service');
      return `${SERVICES.length} units in ${Date.now() - began} ms; "${status}"; "${coordinate.status}"`;
    },
  },
  {
    name: 'units run as users of their own, unprivileged, in cgroups that are theirs',
    run: async (machine) => {
      const { mainPid } = await machine.state(shard(0));
      const seen = await machine.container.shell(
        `stat -c %u /proc/${mainPid}; grep CapEff /proc/${mainPid}/status | cut -f2; ` +
          `stat -c %u "/sys/fs/cgroup$(sed -n s/^0:://p /proc/${mainPid}/cgroup)"`,
      );
      const [uid, capabilities, owner] = seen.split('\n');
      holds(Number(uid) > 0, 'the supervisor is not root');
      holds(Number(capabilities) === 0, 'it has no capability');
      holds(owner === uid, `its cgroup is its own (${owner} and ${uid})`);
      return `uid ${uid}, no capability, cgroup owned by ${owner}`;
    },
  },
  {
    name: 'a token from the credential store is readable by its unit and in no environment',
    run: async (machine) => {
      const { mainPid } = await machine.state(shard(0));
      const seen = await machine.container.shell(
        `stat -c '%a %u' /run/credentials/${shard(0)}/coordinate-token; stat -c %u /proc/${mainPid}; ` +
          `tr '\\0' '\\n' < /proc/${mainPid}/environ | grep -c proof-token || true`,
      );
      const [file, uid, leaks] = seen.split('\n');
      holds(file === `400 ${uid}`, `mode 400 and owned by the unit's user: ${file}`);
      holds(leaks === '0', 'the token is in no environment');
      return `mode and owner ${file}; an absent token did not stop the start`;
    },
  },
  {
    name: 'four shards work through an inbox, each document once',
    run: async (machine) => {
      await machine.submit(40);
      const { items, duplicates } = await machine.finished();
      holds(duplicates === 0, `no document twice (${duplicates})`);
      const each = await Promise.all(
        ALL_SHARDS.map(async (unit) => {
          const lines = await machine.journal(unit);
          return lines.filter(({ event }) => event?.event === 'claim.acked').length;
        }),
      );
      holds(
        each.every((count) => count > 0),
        `every shard had a part: ${each.join(', ')}`,
      );
      return `${items} documents, 0 duplicates; per shard ${each.join(', ')}`;
    },
  },
  {
    name: 'lines carry their priority in the journal',
    run: async (machine) => {
      const lines = (await machine.journal(shard(0))).filter(({ event }) => event?.level !== undefined);
      const expected: Readonly<Record<string, number>> = { error: 3, warn: 4, info: 6, debug: 7, trace: 7 };
      const wrong = lines.filter(({ priority, event }) => expected[String(event?.level)] !== priority);
      holds(lines.length > 0 && wrong.length === 0, `all as expected: ${wrong[0]?.text ?? ''}`);
      return `${lines.length} lines, all with the priority of their level`;
    },
  },
  {
    name: 'systemctl stop in the middle of a run: exit 0, nothing left, claims released',
    run: async (machine) => {
      await machine.submit(24);
      const unit = shard(0);
      await machine.working(unit);
      const pids = await machine.processes(unit);
      const cursor = await machine.now();
      const began = Date.now();
      await machine.systemctl('stop', unit);
      const took = Date.now() - began;
      const after = await machine.state(unit);
      holds(after.active === 'inactive' && after.result === 'success', `inactive: ${JSON.stringify(after)}`);
      holds(after.exitStatus === 0, `exit 0, not ${after.exitStatus}`);
      holds((await machine.alive(pids)).length === 0, `none of ${pids.length} processes is left`);
      const all = (await machine.journal(unit)).map(({ event }) => String(event?.event));
      const count = (event: string): number => all.filter((one) => one === event).length;
      const ended = count('claim.acked') + count('claim.released') + count('claim.expired');
      holds(count('claim.granted') === ended, `${count('claim.granted')} granted, ${ended} ended`);
      const signalled = (await machine.journal(unit, cursor)).filter(
        ({ event }) => event?.event === 'subagent.exit' && typeof event.signal === 'string',
      );
      holds(signalled.length === 0, 'no child was ended by a signal: only the supervisor got one');
      await machine.systemctl('start', unit);
      const { items, duplicates } = await machine.finished();
      holds(duplicates === 0, `no document twice (${duplicates})`);
      return `${took} ms, ${pids.length} processes gone, ${count('claim.released')} claims released; later ${items} documents, 0 duplicates`;
    },
  },
  {
    name: 'restart, rolling through the shards under load',
    run: async (machine) => {
      await machine.submit(40);
      const took: number[] = [];
      for (const unit of ALL_SHARDS) {
        await machine.working(unit).catch(() => undefined);
        const began = Date.now();
        await machine.systemctl('restart', unit);
        took.push(Date.now() - began);
        const { active, result } = await machine.state(unit);
        holds(active === 'active' && result === 'success', `${unit} is back: ${active}, ${result}`);
      }
      const { items, duplicates } = await machine.finished();
      holds(duplicates === 0, `no document twice (${duplicates})`);
      return `${took.join(', ')} ms; ${items} documents, 0 duplicates`;
    },
  },
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
  {
    name: 'a partition works on its own documents',
    run: async (machine) => {
      await machine.systemctl('start', 'agentd@invoices.service');
      const ready = await machine.reached('agentd@invoices.service', 'ready', (state) =>
        state.status.startsWith('ready'),
      );
      const { mainPid } = ready;
      const env = await machine.container.shell(
        `tr '\\0' '\\n' < /proc/${mainPid}/environ | grep ^PARTITION`,
      );
      await machine.systemctl('stop', 'agentd@invoices.service');
      holds(env === 'PARTITION=invoices', env);
      return `"${ready.status}" with ${env}`;
    },
  },
  {
    name: 'systemctl reload leaves the work alone',
    run: async (machine) => {
      const before = await machine.state(shard(0));
      await machine.systemctl('reload', shard(0));
      const after = await machine.reached(shard(0), 'active', ({ active }) => active === 'active');
      holds(
        after.mainPid === before.mainPid && after.restarts === before.restarts,
        'the same process goes on',
      );
      return `pid ${after.mainPid} before and after; "${after.status}"`;
    },
  },
  {
    name: 'systemd-analyze security',
    run: async ({ container }) => {
      const scores = await Promise.all(
        [shard(0), 'agentd-coordinate.service', 'agentd-inbox.service'].map(async (unit) => {
          const { stdout } = await container.run('systemd-analyze', 'security', '--no-pager', unit);
          return `${unit} ${/exposure level for \S+: (.+)$/m.exec(stdout)?.[1]?.trim() ?? '?'}`;
        }),
      );
      return scores.join('; ');
    },
  },
  {
    name: 'stopping the target stops everything, each with exit 0',
    run: async (machine) => {
      await machine.submit(16);
      await machine.working(shard(0));
      const pids = (await Promise.all(SERVICES.map((unit) => machine.processes(unit)))).flat();
      await machine.systemctl('stop', 'agentd.target');
      for (const unit of SERVICES) {
        const state = await machine.reached(unit, 'inactive', ({ active }) => active === 'inactive');
        holds(state.result === 'success' && state.exitStatus === 0, `${unit}: ${JSON.stringify(state)}`);
      }
      holds((await machine.alive(pids)).length === 0, 'no process is left');
      return `${SERVICES.length} units inactive with exit 0, ${pids.length} processes gone`;
    },
  },
];

const UNITS = '/etc/systemd/system';
