import type { Check } from './check.ts';
import { until } from './container.ts';
import { FAULT_CHECKS } from './fault-checks.ts';
import { ALL_SHARDS, holds, SHARDS, shard } from './machine.ts';

const UNITS = '/etc/systemd/system';
const SERVICES = [...ALL_SHARDS, 'agentd-coordinate.service', 'agentd-inbox.service'];

/** In this order: the fleet is started by one of the first and stopped by the last. */
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
      const took: number[] = [];
      for (const unit of ALL_SHARDS) {
        await machine.submit(24);
        await machine.working(unit);
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
  ...FAULT_CHECKS,
  {
    name: 'a partition starts with its name in its environment, and so in its configuration',
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
    name: 'a partition in a flag: $${PARTITION} of a drop-in reaches agentd, which expands it',
    run: async (machine) => {
      const unit = 'agentd@invoices.service';
      await machine.dropIn(
        unit,
        '[Service]\nExecStart=\nExecStart=/usr/bin/env agentd supervise --config $${AGENTD_CONFIG} --config %E/agentd/partition.yaml --subscribe inbox:inbox:///flagged-$${PARTITION}/**',
      );
      const cursor = await machine.now();
      await machine.systemctl('start', unit);
      const { mainPid } = await machine.reached(unit, 'ready', (state) => state.status.startsWith('ready'));
      const arguments_ = await machine.container.shell(`tr '\\0' ' ' < /proc/${mainPid}/cmdline`);
      const lines = await machine.journal(unit, cursor);
      await machine.systemctl('stop', unit);
      await machine.dropIn(unit, '');
      const subscribed = lines.map(({ event }) => event?.match).filter((match) => match !== undefined);
      holds(arguments_.includes('inbox:///flagged-${PARTITION}/**'), `the flag as it arrived: ${arguments_}`);
      holds(subscribed.includes('inbox:///flagged-invoices/**'), `subscribed to ${subscribed.join(', ')}`);
      return `--subscribe inbox:inbox:///flagged-\${PARTITION}/** watches inbox:///flagged-invoices/**`;
    },
  },
  {
    name: 'a partition without a name is refused, once, in a clear sentence',
    run: async (machine) => {
      const unit = 'agentd@nameless.service';
      await machine.dropIn(unit, '[Service]\nEnvironment=PARTITION=');
      await machine.container.run('systemctl', 'start', unit);
      const after = await machine.reached(unit, 'failed', ({ active }) => active === 'failed');
      holds(after.exitStatus === 2 && after.restarts === 0, `exit 2 once: ${JSON.stringify(after)}`);
      holds(after.status.includes('the environment variable PARTITION is not set'), after.status);
      await machine.dropIn(unit, '');
      await machine.systemctl('reset-failed', unit);
      return `exit 2, 0 restarts; status "${after.status}"`;
    },
  },
  {
    name: 'systemctl reload: a good configuration is taken, a bad one is not, and the process goes on',
    run: async (machine) => {
      const unit = shard(0);
      const file = '/etc/agentd/agentd.yaml';
      const before = await machine.state(unit);
      const reload = async (edit: string, event: string): Promise<string> => {
        const cursor = await machine.now();
        await machine.container.shell(`cp ${file} ${file}.kept; ${edit} ${file}`);
        await machine.systemctl('reload', unit);
        const line = await until(`${event} in the journal`, 30_000, async () => {
          const lines = await machine.journal(unit, cursor);
          return lines.find((one) => one.event?.event === event);
        });
        await machine.container.shell(`mv ${file}.kept ${file}`);
        return String(line.event?.msg ?? '');
      };
      const taken = await reload("sed -i 's/max_inflight: 4/max_inflight: 3/'", 'config.reloaded');
      const refused = await reload("sed -i '$ a limts: {}'", 'config.invalid');
      await reload('true', 'config.reloaded');
      const after = await machine.reached(unit, 'active', ({ active }) => active === 'active');
      holds(
        after.mainPid === before.mainPid && after.restarts === before.restarts,
        'the same process goes on',
      );
      return `"${taken}", then "${refused}"; pid ${after.mainPid} before and after; "${after.status}"`;
    },
  },
  {
    name: 'systemd-analyze security',
    run: async ({ container }) => {
      const scores: string[] = [];
      for (const unit of [shard(0), 'agentd-coordinate.service', 'agentd-inbox.service']) {
        const { stdout } = await container.run('systemd-analyze', 'security', '--no-pager', unit);
        const score = /exposure level for \S+: (([\d.]+) .+)$/m.exec(stdout);
        holds(Number(score?.[2]) <= 3, `${unit} is rated 3 or better: ${score?.[1]}`);
        scores.push(`${unit} ${score?.[1]?.trim()}`);
      }
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
