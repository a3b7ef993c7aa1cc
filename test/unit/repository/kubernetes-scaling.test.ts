import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { METRICS } from '../../../protocol/metrics-registry.ts';
import { load } from '../../helpers/load-config.ts';

const FOLDER = join(import.meta.dirname, '../../../examples/kubernetes');
const FILES = readdirSync(FOLDER).filter((name) => /^(keda|hpa|pdb).*\.yaml$/.test(name));
const NAMES = new Set<string>(METRICS.map(({ name }) => name));

interface EnvEntry {
  readonly name: string;
  readonly value?: string;
}
interface Pod {
  readonly terminationGracePeriodSeconds: number;
  readonly automountServiceAccountToken: boolean;
  readonly securityContext: unknown;
  readonly containers: readonly {
    readonly args: readonly string[];
    readonly command?: readonly string[];
    readonly securityContext: unknown;
    readonly env: readonly EnvEntry[];
    readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
    readonly livenessProbe: { readonly httpGet: { readonly path: string; readonly port: string } };
    readonly readinessProbe: { readonly httpGet: { readonly path: string; readonly port: string } };
  }[];
  readonly volumes: readonly { readonly configMap?: { readonly name: string } }[];
}
interface Manifest {
  readonly file: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec: Record<string, unknown>;
}

const manifests: readonly Manifest[] = FILES.flatMap((file) =>
  parseAllDocuments(readFileSync(join(FOLDER, file), 'utf8')).map((document) => {
    expect(document.errors, file).toEqual([]);
    return { file, ...(document.toJS() as Omit<Manifest, 'file'>) };
  }),
);
const ofKind = (...kinds: string[]): Manifest[] => manifests.filter(({ kind }) => kinds.includes(kind));
const workloads = ofKind('Deployment', 'StatefulSet');

function podOf({ spec }: Manifest): Pod {
  return (spec.template as { readonly spec: Pod }).spec;
}
function labelsOf({ spec }: Manifest): unknown {
  return (spec.template as { readonly metadata: { readonly labels: unknown } }).metadata.labels;
}
function configMapOf(workload: Manifest): Readonly<Record<string, string>> {
  const name = podOf(workload).volumes.find((volume) => volume.configMap !== undefined)?.configMap?.name;
  return ofKind('ConfigMap').find(({ metadata }) => metadata.name === name)?.data ?? {};
}

describe('the scaling examples for Kubernetes', () => {
  it('are a KEDA object, an autoscaler, budgets and the workloads they are for', () => {
    const kinds = manifests.map(({ kind }) => kind);
    for (const kind of ['ScaledObject', 'HorizontalPodAutoscaler', 'PodDisruptionBudget']) {
      expect(kinds).toContain(kind);
    }
    expect(workloads.map(({ kind }) => kind).sort()).toEqual(['Deployment', 'StatefulSet']);
  });

  it.each(workloads.map((one) => [one.metadata.name, one] as const))(
    '%s has a configuration that is accepted, with a drain that ends before the grace',
    async (name, workload) => {
      const pod = podOf(workload);
      const [container] = pod.containers;
      const env = Object.fromEntries(
        (container?.env ?? []).map((entry) => [entry.name, entry.value ?? `${name}-2`]),
      );
      const files = Object.fromEntries(
        Object.entries(configMapOf(workload)).map(([file, text]) => [
          file,
          // What the pod has mounted, where this test has its files.
          text.replaceAll('/etc/agentd/', '').replace('/run/secrets/agentd/ca.crt', 'ca.crt'),
        ]),
      );
      expect(container?.args).toEqual(['supervise', '--config', '/etc/agentd/agentd.yaml']);
      const { config, warnings } = await load({
        env,
        files: { ...files, 'ca.crt': 'the authority of the servers' },
        flags: { '--config': ['agentd.yaml'] },
        defaultMode: 'reactive',
        purpose: 'validate',
      });
      // The secrets are mounted in the pod, not here.
      expect(warnings.filter((one) => !one.startsWith('secret file /run/secrets/agentd/'))).toEqual([]);
      const graceMs = pod.terminationGracePeriodSeconds * 1_000;
      expect(config.lifecycle.podGraceMs).toBe(graceMs);
      // Time for the last log lines, and for a kubelet that is late.
      expect(config.lifecycle.drainTimeoutMs).toBeLessThanOrEqual(graceMs - 10_000);
      expect(config.routes.every(({ claim }) => claim !== null)).toBe(true);
      const port = container?.ports.find((one) => one.name === 'metrics')?.containerPort;
      expect(config.observability.metricsAddr).toBe(`0.0.0.0:${port}`);
      expect(container?.livenessProbe.httpGet).toEqual({ path: '/healthz', port: 'metrics' });
      expect(container?.readinessProbe.httpGet).toEqual({ path: '/readyz', port: 'metrics' });
    },
  );

  it('run as unprivileged as the other examples, with agentd as PID 1', () => {
    for (const workload of workloads) {
      const pod = podOf(workload);
      expect(pod.automountServiceAccountToken).toBe(false);
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532 });
      expect(pod.containers[0]?.command).toBeUndefined();
      expect(pod.containers[0]?.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    }
  });

  it('give a set of shards as many replicas as there are shards, and leave a claiming fleet to its autoscaler', () => {
    for (const workload of workloads) {
      const shard = podOf(workload).containers[0]?.env.find(({ name }) => name === 'AGENT_SHARD')?.value;
      if (workload.kind === 'StatefulSet') expect(shard).toBe(`auto/${String(workload.spec.replicas)}`);
      else {
        expect(shard).toBeUndefined();
        expect(workload.spec.replicas).toBeUndefined();
      }
    }
  });

  it('scale by metrics that exist, and a Deployment that does', () => {
    const [scaled] = ofKind('ScaledObject');
    const [autoscaler] = ofKind('HorizontalPodAutoscaler');
    const triggers = scaled?.spec.triggers as readonly { readonly metadata: { readonly query: string } }[];
    const queried = triggers.flatMap(({ metadata }) => metadata.query.match(/\bagent\w*(?=\{)/g) ?? []);
    const metrics = autoscaler?.spec.metrics as readonly { readonly pods: { metric: { name: string } } }[];
    const watched = metrics.map(({ pods }) => pods.metric.name);
    expect(queried).toHaveLength(triggers.length);
    for (const name of [...queried, ...watched]) expect(NAMES, name).toContain(name);
    const deployments = ofKind('Deployment').map(({ metadata }) => metadata.name);
    for (const one of [scaled, autoscaler]) {
      const scaleTarget = one?.spec.scaleTargetRef as { readonly name: string } | undefined;
      expect(deployments).toContain(scaleTarget?.name);
    }
  });

  it('let evictions take one replica at a time of each workload', () => {
    const budgets = ofKind('PodDisruptionBudget');
    expect(budgets).toHaveLength(workloads.length);
    for (const workload of workloads) {
      const budget = budgets.find(({ metadata }) => metadata.name === workload.metadata.name);
      expect(budget?.spec).toEqual({ maxUnavailable: 1, selector: { matchLabels: labelsOf(workload) } });
      expect(workload.spec.selector).toEqual({ matchLabels: labelsOf(workload) });
    }
  });
});

describe('docs/scaling.md', () => {
  const text = readFileSync(join(FOLDER, '../../docs/scaling.md'), 'utf8');

  it('names no metric that does not exist', () => {
    const named = [...text.matchAll(/`(agent_[a-z_]+)/g)].map(([, name = '']) => name);
    expect(named.length).toBeGreaterThan(5);
    for (const name of named) expect(NAMES, name).toContain(name);
  });

  it('shows configuration that parses, and links to files that are there', () => {
    for (const [, yaml = ''] of text.matchAll(/```yaml\n([\s\S]*?)```/g))
      expect(() => parse(yaml)).not.toThrow();
    for (const [, link = ''] of text.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
      expect(() => readFileSync(join(FOLDER, '../../docs', link))).not.toThrow();
    }
  });
});
