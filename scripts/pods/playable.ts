import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { CHECKOUT } from '../package/packed-install.ts';

/** The manifests of examples/kubernetes as pods for `podman kube play`. */

interface Volume {
  readonly name: string;
  readonly secret?: { readonly secretName: string };
  readonly hostPath?: { readonly path: string; readonly type: string };
}
interface EnvEntry {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly fieldRef: { readonly fieldPath: string } };
}
interface Container {
  readonly env: readonly EnvEntry[];
  readonly volumeMounts: readonly { readonly name: string }[];
  readonly [field: string]: unknown;
}
interface PodSpec {
  readonly containers: readonly Container[];
  readonly volumes: readonly Volume[];
  readonly [field: string]: unknown;
}
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec: { readonly template: { readonly metadata: object; readonly spec: PodSpec } };
}

export interface Circumstances {
  /** Name of the pod; of a set, with its ordinal. */
  readonly pod: string;
  /** Folder with one folder for each Secret. */
  readonly secrets: string;
  /** Addresses of the names that a cluster's DNS knows. */
  readonly hosts: Readonly<Record<string, string>>;
  /** What the playbook in place of a model does; absent: there is no model. */
  readonly playbook?: string;
  /** In place of the configuration of the manifest. */
  readonly configuration?: string;
}

/** What podman's `fieldRef` does not know. */
const CLUSTER_FIELDS: Readonly<Record<string, string>> = {
  'metadata.namespace': 'agents',
  'spec.nodeName': 'this-machine',
};

/**
 * The workload of a file as one pod, with its ConfigMaps and claims. Changed is what podman has no
 * counterpart for: Secrets are folders, the workload is a pod of its template, names come from
 * hostAliases, a playbook stands in for the model, and ports and probes are left out, since podman would
 * bind the ports on the machine and look for curl in the image: whoever plays them does the probing.
 */
export async function playable(file: string, circumstances: Circumstances): Promise<string> {
  const text = await readFile(join(CHECKOUT, 'examples/kubernetes', file), 'utf8');
  const manifests = parseAllDocuments(text).map((document) => document.toJS() as Manifest);
  return manifests
    .flatMap((manifest) => {
      if (manifest.kind === 'ConfigMap') return [withFiles(manifest, circumstances)];
      if (manifest.kind === 'PersistentVolumeClaim') return [manifest];
      return manifest.spec.template === undefined ? [] : [asPod(manifest, circumstances)];
    })
    .map((one) => stringify(one))
    .join('---\n');
}

function withFiles(map: Manifest, { pod, playbook, configuration }: Circumstances): object {
  const data = {
    ...map.data,
    ...(playbook === undefined ? {} : { 'playbook.yaml': playbook }),
    ...(configuration === undefined ? {} : { 'agentd.yaml': configuration }),
  };
  return { ...map, metadata: { name: `${pod}-config` }, data };
}

function asPod({ spec: { template } }: Manifest, circumstances: Circumstances): object {
  const { pod, secrets, hosts, playbook } = circumstances;
  const { containers, volumes, ...rest } = template.spec;
  const added =
    playbook === undefined ? [] : [entry('AGENT_INTELLIGENCE', 'script:/etc/agentd/playbook.yaml')];
  // Podman has one emptyDir of a name for all pods.
  const own = (volume: string): string => `${pod}-${volume}`;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...template.metadata, name: pod },
    spec: {
      ...rest,
      hostAliases: Object.entries(hosts).map(([name, ip]) => ({ ip, hostnames: [name] })),
      containers: containers.map(
        ({
          env,
          volumeMounts,
          ports: _ports,
          livenessProbe: _l,
          readinessProbe: _r,
          startupProbe: _s,
          ...container
        }) => ({
          ...container,
          volumeMounts: volumeMounts.map((mount) => ({ ...mount, name: own(mount.name) })),
          env: [...env.map(known), ...added],
        }),
      ),
      volumes: volumes.map((declared) => {
        const volume = { ...declared, name: own(declared.name) };
        const name = volume.secret?.secretName;
        if (name !== undefined)
          return { name: volume.name, hostPath: { path: join(secrets, name), type: 'Directory' } };
        return 'configMap' in volume ? { ...volume, configMap: { name: `${pod}-config` } } : volume;
      }),
    },
  };
}

const entry = (name: string, value: string): EnvEntry => ({ name, value });

function known(variable: EnvEntry): EnvEntry {
  const value = CLUSTER_FIELDS[variable.valueFrom?.fieldRef.fieldPath ?? ''];
  return value === undefined ? variable : entry(variable.name, value);
}
