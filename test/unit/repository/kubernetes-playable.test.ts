import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { playable } from '../../../scripts/pods/playable.ts';

const FOLDER = join(import.meta.dirname, '../../../examples/kubernetes');
const FILES = ['job.yaml', 'coordinator.yaml', 'claim-fleet.yaml', 'sharded-fleet.yaml'];

type Fields = Record<string, unknown>;
interface Pod extends Fields {
  readonly kind: string;
  readonly spec: Fields & { readonly containers: Fields[]; readonly volumes: Fields[] };
}
interface Workload {
  readonly kind: string;
  readonly data?: Fields;
  readonly spec: { readonly template?: { readonly spec: Pod['spec'] } };
}

const parsed = (text: string): unknown[] => parseAllDocuments(text).map((document) => document.toJS());

describe('the manifests as the proof in pods plays them', () => {
  it.each(FILES)('%s keeps what a pod is, and what agentd is told', async (file) => {
    const manifests = parsed(readFileSync(join(FOLDER, file), 'utf8')) as Workload[];
    const original = manifests.find(({ spec }) => spec?.template !== undefined)?.spec.template?.spec;
    const circumstances = { pod: 'p-2', secrets: '/secrets', hosts: { 'coord.agents.svc': '10.0.0.2' } };
    const played = parsed(await playable(file, circumstances)) as Workload[];
    const pod = played.find(({ kind }) => kind === 'Pod') as unknown as Pod;
    for (const field of ['securityContext', 'terminationGracePeriodSeconds', 'restartPolicy'])
      expect(pod.spec[field], field).toEqual(original?.[field]);
    for (const field of ['image', 'args', 'command', 'resources', 'securityContext'])
      expect(pod.spec.containers[0]?.[field], field).toEqual(original?.containers[0]?.[field]);
    expect(pod.spec.volumes).toHaveLength(original?.volumes.length ?? 0);
    expect(JSON.stringify(pod)).not.toContain('secretName');
    const data = (list: Workload[]): unknown => list.find(({ kind }) => kind === 'ConfigMap')?.data;
    expect(data(played)).toEqual(data(manifests));
  });
});
