/** Figures out of the Prometheus text of an instance. */
export interface Samples {
  /** The sum of a series over all its labels, or over those samples that have this label; 0 when absent. */
  sum(name: string, label?: readonly [name: string, value: string]): number;
  /** One sample, or null when the instance does not have it. */
  value(name: string, label?: readonly [name: string, value: string]): number | null;
}

interface Sample {
  readonly labels: string;
  readonly value: number;
}

const LINE = /^([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\S+)$/;

export function parseSamples(text: string): Samples {
  const byName = new Map<string, Sample[]>();
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = LINE.exec(line) ?? [];
    if (name === undefined || value === undefined || !Number.isFinite(Number(value))) continue;
    const known = byName.get(name) ?? [];
    known.push({ labels, value: Number(value) });
    byName.set(name, known);
  }
  const matching = (name: string, label?: readonly [string, string]): readonly Sample[] => {
    const all = byName.get(name) ?? [];
    if (label === undefined) return all;
    const wanted = `${label[0]}="${label[1]}"`;
    return all.filter(({ labels }) => labels === wanted || labels.split(',').includes(wanted));
  };
  return {
    sum: (name, label) => matching(name, label).reduce((sum, { value }) => sum + value, 0),
    value: (name, label) => matching(name, label)[0]?.value ?? null,
  };
}
