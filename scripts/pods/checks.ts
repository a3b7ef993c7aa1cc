import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../systemd/container.ts';
import { holds } from '../systemd/machine.ts';
import type { Cluster, Pod } from './cluster.ts';

/** One claim about the image and the manifests, shown on running pods. */
interface Check {
  readonly name: string;
  /** @returns what was seen, in one line @throws Error when it does not hold */
  readonly run: (cluster: Cluster) => Promise<string>;
}

/** Slow enough to be caught in the middle. */
const PLAYBOOK = `turns:
  - tool: { name: inbox__read, arguments: { uri: "{{event.uri}}" } }
  - sleep: 1500
  - tool: { name: inbox__complete, arguments: { uri: "{{event.uri}}", result: "{{last.text|first:40}}" } }
  - final: "filed {{event.uri}}"
`;
/** Of terminationGracePeriodSeconds, in the manifests of fleets. */
const GRACE_S = 60;
const SHARDS = 4;
/** Pods that one check starts and a later one uses. */
const running: { coordinator?: Pod; claiming?: Pod[] } = {};

/** In this order. */
export const CHECKS: readonly Check[] = [
  {
    name: 'the image starts agentd, not as root and without a shell',
    run: async (cluster) => {
      const format = '{{.Config.User}} {{json .Config.Entrypoint}} {{json .Config.StopSignal}} {{.Size}}';
      const image = await cluster.podman('image', 'inspect', '--format', format, cluster.image);
      holds(image.startsWith('65532:65532 ["agentd"] "SIGTERM" '), `user, entry point and signal: ${image}`);
      const history = await cluster.podman('history', '--format', '{{.Size}}', cluster.image);
      const added = history.split('\n').find((size) => size !== '0 B');
      const parts = ['/usr/local/bin/node', '/opt/agentd'];
      const { stdout } = await cluster.once(['--entrypoint=/usr/bin/du'], '-sm', ...parts);
      return `user 65532; on Debian's base ${added}: ${stdout.replaceAll('\t', ' MiB ').replace('\n', ', ')}`;
    },
  },
  {
    name: '`--version`, `doctor` and a run, on a read-only root and without capabilities',
    run: async (cluster) => {
      const version = await cluster.once(['--network=none'], '--version');
      holds(`agentd:${version.stdout}` === cluster.image, `the version is the tag: ${version.stdout}`);
      const doctor = await cluster.once(['--network=none'], 'doctor');
      holds(doctor.code === 0, `doctor ends with 0: ${doctor.stdout} ${doctor.stderr}`);
      const warned = doctor.stdout.match(/^warn +\S+/gm) ?? [];
      const args = ['run', '--instruction', 'Say that it works.', '--intelligence', 'script:final:works'];
      const run = await cluster.once(['--network=none'], ...args);
      holds(run.code === 0 && run.stdout === 'works', `a run ends with 0: ${run.stdout} ${run.stderr}`);
      const capabilities = await cluster.once(['--entrypoint=/bin/grep'], 'CapBnd', '/proc/self/status');
      holds(/0000000000000000/.test(capabilities.stdout), `no capability: ${capabilities.stdout}`);
      return `${version.stdout}; doctor 0 (${warned.map((line) => line.replace(/ +/, ' ')).join(', ')}); run 0`;
    },
  },
  {
    name: 'job.yaml: the exit codes its podFailurePolicy is about',
    run: async (cluster) => {
      const seen: string[] = [];
      const job = async (name: string, code: number, how: Parameters<Cluster['play']>[2]): Promise<Pod> => {
        const pod = await cluster.play('job.yaml', `agentd-job-${name}`, how);
        const ended = await cluster.exitCode(pod);
        holds(ended === code, `${name} ends with ${code}: ${ended}\n${await cluster.logs(pod)}`);
        seen.push(`${name} ${ended}`);
        return pod;
      };
      const done = await job('done', 0, { playbook: 'turns: [{ final: a summary }]' });
      holds(/^a summary$/m.test(await cluster.logs(done)), 'the result is in its log');
      const [start] = await cluster.events(done);
      holds(start?.pid === 1 && start.instance === done.name, 'agentd is PID 1, and called as its pod is');
      await job('refused', 5, { playbook: 'turns: [{ refuse: not this }]' });
      await job('misconfigured', 2, { configuration: 'agent: { instruction: x }\nlimts: {}\n' });
      await job('without-a-model', 4, {});
      return `${seen.join(', ')}; as PID 1`;
    },
  },
  {
    name: 'coordinator.yaml: leases over TLS, for those with the token',
    run: async (cluster) => {
      const pod = await cluster.play('coordinator.yaml', 'agentd-coordinator-0');
      running.coordinator = pod;
      await cluster.ready(pod);
      const url = 'https://coord.agents.svc:8443/mcp';
      const ask = ['work', 'stats', '--json', '--url', url, '--tls-ca', '/run/secrets/agentd/ca.crt'];
      const options = cluster.beside('agentd-claiming');
      const stats = await cluster.once(options, ...ask, '--bearer-file', '/run/secrets/agentd/coord-token');
      holds(stats.code === 0, `stats with the token: ${stats.stderr}`);
      const refused = await cluster.once(options, ...ask, '--bearer-file', '/run/secrets/agentd/inbox-token');
      holds(refused.code !== 0, 'another token is refused');
      return `ready, pending ${(JSON.parse(stats.stdout) as { pending: number }).pending}; another token: exit ${refused.code}`;
    },
  },
  {
    name: 'claim-fleet.yaml: two replicas work through an inbox, each document once',
    run: async (cluster) => {
      const pods = await fleet(cluster, 'claim-fleet.yaml', 'agentd-claiming', 2);
      running.claiming = pods;
      await cluster.submit(24);
      return `24 documents, ${await eachOnce(cluster, pods)}`;
    },
  },
  {
    name: 'what `kubectl exec` leaves behind is reaped',
    run: async (cluster) => {
      const pod = running.claiming?.[0];
      if (pod === undefined) throw new Error('no fleet is running');
      const inside = (script: string): Promise<string> =>
        cluster.podman('exec', pod.container, 'sh', '-c', script);
      await inside('for each in 1 2 3 4 5; do sleep 0.5 & done');
      await until('PID 1 to have reaped them', 20_000, async () => {
        const processes = await inside('cat /proc/[0-9]*/stat 2>/dev/null || true');
        return /\(sleep\)|\) Z /.test(processes) ? undefined : true;
      });
      return '5 orphans, no zombie left';
    },
  },
  {
    name: 'stopping a replica in the middle of its runs',
    run: async (cluster) => {
      const [leaving, staying] = running.claiming ?? [];
      if (leaving === undefined || staying === undefined) throw new Error('no fleet is running');
      await cluster.submit(16);
      await until(`${leaving.name} to be at work`, 60_000, async () =>
        (await open(cluster, leaving)) > 1 ? true : undefined,
      );
      const seen = new Set<string>();
      let stopped = false;
      const stopping = cluster.stop(leaving, GRACE_S).finally(() => {
        stopped = true;
      });
      while (!stopped) {
        const [alive, ready] = [
          await cluster.probe(leaving, '/healthz'),
          await cluster.probe(leaving, '/readyz'),
        ];
        if (alive !== 0 && ready !== 0) seen.add(`healthz ${alive} readyz ${ready}`);
      }
      const code = await stopping;
      holds(code === 0, `exit 0 (${code})`);
      const events = await cluster.events(leaving);
      const drain = events.find(({ event }) => event === 'drain.done');
      const released = events.filter(({ event }) => event === 'claim.released').length;
      holds(released > 0, 'it gave back what it had not finished');
      holds(
        seen.has('healthz 200 readyz 503'),
        `alive and not ready while draining: ${[...seen].join(', ')}`,
      );
      holds(![...seen].some((one) => one.startsWith('healthz 503')), 'never called dead');
      const polled = '`/healthz` 200 and `/readyz` 503 meanwhile';
      await cluster.finished();
      const duplicates = await cluster.duplicates();
      holds(duplicates === 0, `no document twice (${duplicates})`);
      return `drained in ${drain?.dur_ms} ms, exit 0, ${released} claims given back; ${polled}; the other replica did the rest, 0 duplicates`;
    },
  },
  {
    name: 'a second SIGTERM forces the end',
    run: async (cluster) => {
      // A child that hears no cancel: the drain would take its time.
      const pod = await cluster.play('job.yaml', 'agentd-job-forced', {
        playbook: 'turns: [{ spin: true }]',
      });
      const pid = Number(await cluster.podman('inspect', '--format', '{{.State.Pid}}', pod.container));
      const said = (name: string): Promise<true> =>
        until(`${pod.name} to say ${name}`, 30_000, async () =>
          (await cluster.events(pod)).some(({ event }) => event === name) ? true : undefined,
        );
      await said('loop.start');
      process.kill(pid, 'SIGTERM');
      await said('drain.start');
      // Closer together than this, two signals are one request.
      await pause(300);
      process.kill(pid, 'SIGTERM');
      const code = await cluster.exitCode(pod);
      holds(code === 143, `exit 143 (${code})`);
      return 'exit 143, which the podFailurePolicy ignores';
    },
  },
  {
    name: 'sharded-fleet.yaml: four shards from their ordinals',
    run: async (cluster) => {
      for (const pod of running.claiming ?? []) await cluster.stop(pod, GRACE_S);
      const pods = await fleet(cluster, 'sharded-fleet.yaml', 'agentd-sharded', SHARDS);
      await cluster.submit(40);
      const seen = await eachOnce(cluster, pods);
      for (const pod of [...pods, ...(running.claiming ?? []).slice(1)])
        holds((await cluster.stop(pod, GRACE_S)) === 0, `${pod.name} ends with 0`);
      return `40 documents, ${seen}; all end with 0`;
    },
  },
  {
    name: 'stopping the coordination server',
    run: async (cluster) => {
      if (running.coordinator === undefined) throw new Error('no coordination server is running');
      const began = Date.now();
      const code = await cluster.stop(running.coordinator, 15);
      holds(code === 0, `exit 0 (${code})`);
      return `exit 0 after ${((Date.now() - began) / 1_000).toFixed(1)} s`;
    },
  },
];

/** Plays the workload of a file `count` times, with ordinals, and waits until every pod is ready. */
async function fleet(cluster: Cluster, file: string, name: string, count: number): Promise<Pod[]> {
  const pods: Pod[] = [];
  for (let index = 0; index < count; index++)
    pods.push(await cluster.play(file, `${name}-${index}`, { playbook: PLAYBOOK }));
  for (const pod of pods) {
    await cluster.ready(pod);
    holds((await cluster.probe(pod, '/healthz')) === 200, `${pod.name} is alive`);
  }
  return pods;
}

/** Runs of a pod that have started and not ended. */
async function open(cluster: Cluster, pod: Pod): Promise<number> {
  const events = await cluster.events(pod);
  const count = (name: string): number => events.filter(({ event }) => event === name).length;
  return count('loop.start') - count('loop.final');
}

/** Waits for the inbox to be done and says who did how much. @throws Error when something was done twice */
async function eachOnce(cluster: Cluster, pods: readonly Pod[]): Promise<string> {
  await cluster.finished();
  const duplicates = await cluster.duplicates();
  holds(duplicates === 0, `no document twice (${duplicates})`);
  const by = await Promise.all(
    pods.map(async (pod) => {
      const events = await cluster.events(pod);
      return events.filter(({ event }) => event === 'claim.acked').length;
    }),
  );
  holds(
    by.every((count) => count > 0),
    `each pod has done some: ${by.join(', ')}`,
  );
  return `${by.join(' + ')} by pod, 0 duplicates`;
}
