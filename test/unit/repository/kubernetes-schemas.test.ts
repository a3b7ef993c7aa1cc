import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { complaints } from '../../helpers/kubernetes-schema.ts';

const FOLDER = join(import.meta.dirname, '../../../examples/kubernetes');

type Fields = Record<string, unknown>;
interface Manifest extends Fields {
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

function manifestsOf(file: string): Manifest[] {
  return parseAllDocuments(readFileSync(join(FOLDER, file), 'utf8'), { uniqueKeys: true }).map((document) => {
    expect([...document.errors, ...document.warnings], file).toEqual([]);
    return document.toJS() as Manifest;
  });
}

const FILES = readdirSync(FOLDER).filter((name) => !name.startsWith('Dockerfile'));
const MANIFESTS = FILES.flatMap((file) =>
  manifestsOf(file).map(
    (manifest) => [`${file}: ${manifest.kind} ${manifest.metadata.name}`, manifest] as const,
  ),
);

/** Every object in a document, with the name of the field it is in. */
function* objectsIn(value: unknown, name = ''): Generator<readonly [string, Fields]> {
  if (Array.isArray(value)) for (const one of value) yield* objectsIn(one, name);
  else if (typeof value === 'object' && value !== null) {
    yield [name, value as Fields];
    for (const [key, field] of Object.entries(value)) yield* objectsIn(field, key);
  }
}

function deployment(): { spec: Fields & { template: { spec: Fields & { containers: Fields[] } } } } & Fields {
  const found = manifestsOf('claim-fleet.yaml').find(({ kind }) => kind === 'Deployment');
  return found as unknown as ReturnType<typeof deployment>;
}

describe('the published schemas of Kubernetes, KEDA and the Prometheus Operator', () => {
  it.each(MANIFESTS)('accept %s', (_name, manifest) => {
    expect(complaints(manifest)).toEqual([]);
  });

  it.each(MANIFESTS)('refuse an unknown field anywhere in %s', (_name, manifest) => {
    // Maps whose keys are the author's.
    const open = ['data', 'labels', 'limits', 'matchLabels', 'requests', 'selector of a Service'];
    let tried = 0;
    for (const [name, object] of objectsIn(manifest)) {
      const map = name === 'selector' ? `selector of a ${manifest.kind}` : name;
      // What a trigger is set up with is free-form in KEDA's schema.
      if (open.includes(map) || (name === 'metadata' && 'serverAddress' in object)) continue;
      object.bogus = 'x';
      expect(complaints(manifest), name).toEqual([expect.stringMatching(/^unknown field (.*\.)?bogus$/)]);
      delete object.bogus;
      tried += 1;
    }
    expect(tried).toBeGreaterThan(1);
  });

  it('refuse a field with a typing error, and say where it is', () => {
    const typed = deployment();
    typed.spec.template.spec.terminationGracePeriodSecond = 60;
    typed.spec.template.spec.containers[0] = { ...typed.spec.template.spec.containers[0], redinessProbe: {} };
    expect(complaints(typed)).toEqual([
      'unknown field spec.template.spec.containers[0].redinessProbe',
      'unknown field spec.template.spec.terminationGracePeriodSecond',
    ]);
  });

  it('refuse a value of another type, and a field that is missing', () => {
    const typed = deployment();
    typed.spec.replicas = 'three';
    delete typed.spec.selector;
    const [found, ...others] = complaints(typed);
    expect(others).toEqual([]);
    expect(found).toMatch(/data\/spec must have required property selector/);
    expect(found).toMatch(/data\/spec\/replicas must be integer/);
  });

  it('are there for a kind and its version, or it is refused rather than passed over', () => {
    expect(complaints({ ...deployment(), apiVersion: 'apps/v1beta2' })).toEqual([
      'there is no schema for Deployment of apps/v1beta2',
    ]);
    expect(complaints({ ...deployment(), kind: 'Deploymnt' })).toEqual([
      'there is no schema for Deploymnt of apps/v1',
    ]);
  });
});
