import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { EXIT_CODE_TABLE } from '../../../protocol/exit-codes.ts';
import { parseDuration } from '../../../supervisor/config/quantities.ts';
import { load } from '../../helpers/load-config.ts';

const FOLDER = join(import.meta.dirname, '../../../examples/kubernetes');
const FILES = readdirSync(FOLDER).filter((name) => /\.yaml$/.test(name) && !/^(keda|hpa|pdb)/.test(name));

interface Named {
  readonly name: string;
}
interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}
interface Container extends Named {
  readonly image: string;
  readonly args: readonly string[];
  readonly command?: readonly string[];
  readonly env: readonly (Named & { readonly value?: string })[];
  readonly ports?: readonly (Named & { readonly containerPort: number })[];
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly startupProbe?: Probe;
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly resources: { readonly limits: Readonly<Record<string, string>> };
  readonly volumeMounts: readonly (Named & { readonly mountPath: string })[];
}
interface Pod {
  readonly restartPolicy?: string;
  readonly terminationGracePeriodSeconds: number;
  readonly automountServiceAccountToken: boolean;
  readonly shareProcessNamespace?: boolean;
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly containers: readonly [Container];
  readonly volumes: readonly (Named & { readonly configMap?: Named })[];
}
interface Rule {
  readonly action: string;
  readonly onExitCodes?: {
    readonly containerName: string;
    readonly operator: string;
    readonly values: number[];
  };
  readonly onPodConditions?: readonly { readonly type: string; readonly status: string }[];
}
interface Spec {
  readonly template: { readonly metadata: { readonly labels: { readonly app: string } }; readonly spec: Pod };
  readonly podFailurePolicy?: { readonly rules: readonly Rule[] };
  readonly jobTemplate?: { readonly spec: Spec };
  readonly selector?: { readonly matchLabels?: unknown; readonly matchExpressions?: { values: string[] }[] };
  readonly replicas?: number;
  readonly [key: string]: unknown;
}
interface Manifest {
  readonly file: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Named;
  readonly data?: Readonly<Record<string, string>>;
  readonly spec: Spec;
}

const manifests: readonly Manifest[] = FILES.flatMap((file) =>
  parseAllDocuments(readFileSync(join(FOLDER, file), 'utf8'), { uniqueKeys: true }).map((document) => {
    expect(document.errors, file).toEqual([]);
    return { file, ...(document.toJS() as Omit<Manifest, 'file'>) };
  }),
);
const API: Readonly<Record<string, string>> = {
  ConfigMap: 'v1',
  Service: 'v1',
  PersistentVolumeClaim: 'v1',
  Deployment: 'apps/v1',
  StatefulSet: 'apps/v1',
  Job: 'batch/v1',
  CronJob: 'batch/v1',
  NetworkPolicy: 'networking.k8s.io/v1',
  PodMonitor: 'monitoring.coreos.com/v1',
};

const ofKind = (...kinds: string[]): Manifest[] => manifests.filter(({ kind }) => kinds.includes(kind));
const workSpec = ({ spec }: Manifest): Spec => spec.jobTemplate?.spec ?? spec;
const podOf = (workload: Manifest): Pod => workSpec(workload).template.spec;
const appOf = (workload: Manifest): string => workSpec(workload).template.metadata.labels.app;
const portOf = (workload: Manifest, name: string): number | undefined =>
  podOf(workload).containers[0].ports?.find((port) => port.name === name)?.containerPort;

const workloads = ofKind('Deployment', 'StatefulSet', 'Job', 'CronJob').map(
  (one) => [one.metadata.name, one] as const,
);
const engines = workloads.filter(([, one]) => podOf(one).containers[0].args[0] !== 'coordinate');
const fleets = workloads.filter(([, one]) => ['Deployment', 'StatefulSet'].includes(one.kind));
const jobs = workloads.filter(([, one]) => ['Job', 'CronJob'].includes(one.kind));

describe('the examples for Kubernetes', () => {
  it('are one of each kind, and of the API version that serves it', () => {
    expect([...new Set(manifests.map(({ kind }) => kind))].sort()).toEqual(Object.keys(API).sort());
    for (const { kind, apiVersion, file } of manifests) expect(apiVersion, file).toBe(API[kind]);
    const names = manifests.map(({ kind, metadata }) => `${kind}/${metadata.name}`);
    expect(new Set(names).size).toBe(names.length);
  });

  it.each(workloads)('%s runs unprivileged, as PID 1, on a read-only root', (_name, workload) => {
    const pod = podOf(workload);
    const [container] = pod.containers;
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 65532,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(pod.automountServiceAccountToken).toBe(false);
    // With a shared process namespace the pause process is PID 1, and with a command a shell could be.
    expect(pod.shareProcessNamespace).toBeUndefined();
    expect(container.command).toBeUndefined();
    expect(container.resources.limits.memory).toBeDefined();
    const mounted = container.volumeMounts.map(({ name }) => name).sort();
    expect(pod.volumes.map(({ name }) => name).sort()).toEqual(mounted);
  });

  it.each(engines)(
    '%s has a configuration that is accepted, and a grace above its drain',
    async (name, workload) => {
      const pod = podOf(workload);
      const [container] = pod.containers;
      const map = pod.volumes.find(({ configMap }) => configMap !== undefined)?.configMap?.name;
      const data = ofKind('ConfigMap').find(({ metadata }) => metadata.name === map)?.data ?? {};
      // What the pod has mounted, where this test has its files.
      const text = (data['agentd.yaml'] ?? '').replaceAll('/run/secrets/agentd/ca.crt', 'ca.crt');
      const files = { 'agentd.yaml': text, 'ca.crt': 'the authority of the servers' };
      const [verb, ...args] = container.args;
      const flags: Record<string, string | string[]> = {};
      for (let at = 0; at < args.length; at += 2) flags[args[at] ?? ''] = args[at + 1] ?? '';
      expect(flags['--config']).toBe('/etc/agentd/agentd.yaml');
      const { config, warnings } = await load({
        files,
        env: Object.fromEntries(container.env.map((entry) => [entry.name, entry.value ?? `${name}-2`])),
        flags: { ...flags, '--config': ['agentd.yaml'] },
        defaultMode: verb === 'supervise' ? 'reactive' : 'once',
        purpose: 'validate',
      });
      expect(warnings.filter((one) => !/\/run\/secrets\/agentd\//.test(one))).toEqual([]);
      const graceMs = pod.terminationGracePeriodSeconds * 1_000;
      expect(config.lifecycle.podGraceMs).toBe(graceMs);
      expect(config.lifecycle.drainTimeoutMs).toBeLessThanOrEqual(graceMs - 10_000);
      const { metricsAddr } = config.observability;
      const port = portOf(workload, 'metrics');
      expect(metricsAddr).toBe(port === undefined ? null : `0.0.0.0:${port}`);
    },
  );

  it.each(fleets)('%s is probed where it answers', (_name, workload) => {
    const [container] = podOf(workload).containers;
    const names = container.ports?.map(({ name }) => name);
    expect(container.livenessProbe?.httpGet).toEqual({ path: '/healthz', port: 'metrics' });
    expect(container.readinessProbe?.httpGet).toEqual({ path: '/readyz', port: 'metrics' });
    for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe])
      if (probe !== undefined) expect(names).toContain(probe.httpGet.port);
    expect(workload.spec.selector).toEqual({ matchLabels: { app: appOf(workload) } });
  });

  it('the shards are as many as the replicas, by ordinal', () => {
    const [set] = ofKind('StatefulSet');
    const args = set === undefined ? [] : podOf(set).containers[0].args;
    expect(args[args.indexOf('--shard') + 1]).toBe(`auto/${set?.spec.replicas}`);
    expect(ofKind('Service').map(({ metadata }) => metadata.name)).toContain(set?.spec.serviceName);
  });

  it.each(jobs)('%s decides by the exit-code table', (_name, workload) => {
    const { podFailurePolicy, template } = workSpec(workload);
    expect(template.spec.restartPolicy).toBe('Never');
    const rules = podFailurePolicy?.rules ?? [];
    const codes = (action: string): number[] =>
      rules
        .filter((rule) => rule.action === action)
        .flatMap(({ onExitCodes }) => onExitCodes?.values ?? [])
        .sort((a, b) => a - b);
    const meaning = (...intents: string[]): number[] =>
      EXIT_CODE_TABLE.filter(({ intent }) => intents.includes(intent)).map(({ code }) => code);
    // Repeating what was decided or paid for changes nothing; everything else is worth an attempt.
    expect(codes('FailJob')).toEqual(meaning('terminal', 'policy'));
    expect(codes('Count')).toEqual([...meaning('retriable'), 137]);
    expect(codes('Ignore')).toEqual([143]);
    expect([...codes('FailJob'), ...codes('Count'), ...codes('Ignore'), 0].sort((a, b) => a - b)).toEqual(
      EXIT_CODE_TABLE.map(({ code }) => code),
    );
    expect(rules[0]?.onPodConditions).toEqual([{ type: 'DisruptionTarget', status: 'True' }]);
    for (const { onExitCodes } of rules) {
      if (onExitCodes !== undefined)
        expect(onExitCodes).toMatchObject({
          containerName: template.spec.containers[0].name,
          operator: 'In',
        });
    }
    const { args } = template.spec.containers[0];
    const deadlineMs = parseDuration(args[args.indexOf('--deadline') + 1] ?? '') ?? Number.NaN;
    expect(Number(workSpec(workload).activeDeadlineSeconds) * 1_000).toBeGreaterThan(deadlineMs);
  });

  it('the policies and the monitor select pods that exist, on ports they have', () => {
    const apps = new Set([
      ...workloads.map(([, one]) => appOf(one)),
      // Those of the files about scaling.
      'agentd-workers',
      'agentd-shards',
    ]);
    const selected = JSON.stringify(ofKind('NetworkPolicy', 'PodMonitor'));
    const named = [...selected.matchAll(/agentd-[a-z]+/g)]
      .map(([name]) => name)
      .filter((name) => name !== 'agentd-supervisors');
    expect(new Set(named)).toEqual(apps);
    const [monitor] = ofKind('PodMonitor');
    const endpoints = monitor?.spec.podMetricsEndpoints as { port: string; path: string }[];
    for (const { port, path } of endpoints) {
      expect(path).toBe('/metrics');
      for (const [, fleet] of fleets) expect(portOf(fleet, port)).toBe(9090);
    }
    const ports = [...selected.matchAll(/"port":(\d+)/g)].map(([, port]) => Number(port));
    const [coordinator] = ofKind('Deployment').filter(
      ({ metadata }) => metadata.name === 'agentd-coordinator',
    );
    const known = [53, 443, 9090, coordinator === undefined ? 0 : portOf(coordinator, 'mcp')];
    for (const port of ports) expect(known).toContain(port);
  });
});

describe('the Dockerfile', () => {
  const text = readFileSync(join(FOLDER, 'Dockerfile'), 'utf8');
  const [, , final = ''] = text.split(/^(?=FROM )/m).slice(1);
  const packageFile = JSON.parse(readFileSync(join(FOLDER, '../../package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
    version: string;
  };

  it('ends in a stage that is not root, and has nothing in front of agentd', () => {
    expect(final).toMatch(/^USER 65532:65532$/m);
    expect(final).toMatch(/^ENTRYPOINT \["agentd"\]$/m);
    expect(final).toMatch(/^STOPSIGNAL SIGTERM$/m);
    expect(final).not.toMatch(/tini|dumb-init|sh -c|^RUN/m);
    expect(text).toContain(`agentd:${packageFile.version}`);
  });

  it('keeps of the dependencies what is not in the bundles', () => {
    const kept = [...text.matchAll(/! -name '?([@\w-]+)'?/g)].map(([, name]) => name);
    expect(kept).toEqual(expect.arrayContaining(['better-sqlite3', 'koffi']));
    expect(kept.filter((name) => name !== undefined && name in packageFile.dependencies)).toEqual([
      'better-sqlite3',
      'koffi',
    ]);
  });

  it('the manifests run the image it builds', () => {
    for (const [, workload] of workloads)
      expect(podOf(workload).containers[0].image).toBe(`agentd:${packageFile.version}`);
  });
});
