import { expect } from 'vitest';
import { METRICS, type MetricSpec, OTHER } from '../../../protocol/metrics-registry.ts';
import type { Family } from './exposition.ts';

export const SPECS: readonly MetricSpec[] = METRICS;

/** The families are the registry, with its types, and their labels and values are within it. */
export function expectRegistered(families: ReadonlyMap<string, Family>): void {
  expect([...families.keys()].sort()).toEqual(SPECS.map(({ name }) => name).sort());
  for (const spec of SPECS) {
    const family = families.get(spec.name);
    expect(family, spec.name).toMatchObject({ type: spec.type, help: spec.help });
    for (const sample of family?.samples ?? []) {
      const { le, ...labels } = sample.labels;
      expect(le !== undefined, spec.name).toBe(sample.name === `${spec.name}_bucket`);
      expect(Object.keys(labels).sort(), spec.name).toEqual(spec.labels.map(({ name }) => name).sort());
      for (const { name, values } of spec.labels) {
        if (values !== undefined) expect([...values, OTHER]).toContain(labels[name]);
      }
      expect(Number.isFinite(sample.value), spec.name).toBe(true);
    }
  }
}
