import { METRICS, type MetricSpec } from '../../protocol/metrics-registry.ts';
import { LabelFolding } from './label-folding.ts';
import type { Labels } from './metrics.ts';

/** One series of a counter or gauge. */
export interface Sample {
  readonly labels: Record<string, string>;
  value: number;
}

/** One series of a histogram: `counts[i]` observations in the i-th bucket, the last one is +Inf. */
export interface Distribution {
  readonly labels: Record<string, string>;
  readonly counts: number[];
  sum: number;
  count: number;
}

export interface RecordedMetric {
  readonly spec: MetricSpec;
  readonly samples: Map<string, Sample>;
  readonly distributions: Map<string, Distribution>;
}

/** Figures that are one and the same under two names. */
const ALIAS: Readonly<Record<string, string>> = {
  agent_pending_events: 'agent_reactive_backlog',
  agent_reactive_backlog: 'agent_pending_events',
};

/**
 * The figures of this process in memory, cheap to record and independent of the exposition format.
 * Names and types that are not in the registry, and values that are no figure, are ignored.
 */
export class MetricRecorder {
  private readonly metrics = new Map<string, RecordedMetric>();
  private readonly folding = new LabelFolding();

  constructor(specs: readonly MetricSpec[] = METRICS) {
    for (const spec of specs) {
      const metric: RecordedMetric = { spec, samples: new Map(), distributions: new Map() };
      this.metrics.set(spec.name, metric);
      for (const labels of initialSeries(spec)) this.sample(metric, labels);
    }
  }

  all(): Iterable<RecordedMetric> {
    return this.metrics.values();
  }

  add(name: string, labels: Labels, by: number): void {
    const metric = this.metrics.get(name);
    if (metric?.spec.type !== 'counter' || !Number.isFinite(by) || by < 0) return;
    this.sample(metric, labels).value += by;
  }

  set(name: string, value: number, labels: Labels): void {
    const metric = this.metrics.get(name);
    if (metric?.spec.type !== 'gauge' || !Number.isFinite(value)) return;
    this.sample(metric, labels).value = value;
    const alias = this.metrics.get(ALIAS[name] ?? '');
    if (alias !== undefined) this.sample(alias, labels).value = value;
  }

  remove(name: string, labels: Labels): void {
    const metric = this.metrics.get(name);
    if (metric?.spec.type === 'gauge') {
      metric.samples.delete(this.folding.values(metric.spec, labels).join('\u0000'));
    }
  }

  observe(name: string, value: number, labels: Labels): void {
    const metric = this.metrics.get(name);
    if (metric?.spec.type !== 'histogram' || !Number.isFinite(value)) return;
    const buckets = metric.spec.buckets ?? [];
    const values = this.folding.values(metric.spec, labels);
    const key = values.join('\u0000');
    let series = metric.distributions.get(key);
    if (series === undefined) {
      series = {
        labels: named(metric.spec, values),
        counts: Array(buckets.length + 1).fill(0),
        sum: 0,
        count: 0,
      };
      metric.distributions.set(key, series);
    }
    const found = buckets.findIndex((bound) => value <= bound);
    const index = found === -1 ? buckets.length : found;
    series.counts[index] = (series.counts[index] ?? 0) + 1;
    series.sum += value;
    series.count += 1;
  }

  private sample(metric: RecordedMetric, labels: Labels): Sample {
    const values = this.folding.values(metric.spec, labels);
    const key = values.join('\u0000');
    let sample = metric.samples.get(key);
    if (sample === undefined) {
      sample = { labels: named(metric.spec, values), value: 0 };
      metric.samples.set(key, sample);
    }
    return sample;
  }
}

function named(spec: MetricSpec, values: readonly string[]): Record<string, string> {
  return Object.fromEntries(spec.labels.map((label, index) => [label.name, values[index] ?? '']));
}

/**
 * The series that exist from the start at 0: those without labels, and counters over closed sets,
 * so that a first failure is an increase and not an appearance.
 */
function initialSeries(spec: MetricSpec): Labels[] {
  if (spec.optional === true || spec.type === 'histogram') return [];
  if (spec.type === 'gauge') return spec.labels.length === 0 ? [{}] : [];
  let combinations: Labels[] = [{}];
  for (const label of spec.labels) {
    const values = label.values ?? [];
    combinations = combinations.flatMap((labels) =>
      values.map((value) => ({ ...labels, [label.name]: value })),
    );
  }
  return combinations;
}
