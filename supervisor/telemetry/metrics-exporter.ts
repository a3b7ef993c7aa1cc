import type { Registry } from 'prom-client';
import { MetricRecorder, type RecordedMetric } from './metric-recorder.ts';
import type { Metrics } from './metrics.ts';

/**
 * The metrics of this process: recorded in memory, exposed by prom-client in the text format. The
 * library is loaded by the first scrape, so a run nobody scrapes does not pay for it; what was
 * recorded before appears all the same.
 */
export function createMetrics(): Metrics {
  const recorder = new MetricRecorder();
  let registry: Promise<Registry> | null = null;
  return {
    add: (name, labels = {}, by = 1) => recorder.add(name, labels, by),
    set: (name, value, labels = {}) => recorder.set(name, value, labels),
    remove: (name, labels) => recorder.remove(name, labels),
    observe: (name, value, labels = {}) => recorder.observe(name, value, labels),
    render: async () => {
      registry ??= exposition(recorder);
      return (await registry).metrics();
    },
  };
}

/** A registry of our own (never the global one) whose metrics read the recorder at each scrape. */
async function exposition(recorder: MetricRecorder): Promise<Registry> {
  const { Counter, Gauge, Histogram, Registry } = await import('prom-client');
  const registry = new Registry();
  const base = ({ spec }: RecordedMetric) => ({
    name: spec.name,
    help: spec.help,
    labelNames: spec.labels.map((label) => label.name),
    registers: [registry],
  });

  /** prom-client's histogram can only observe; ours is already counted. */
  class RecordedHistogram extends Histogram {
    private readonly metric: RecordedMetric;

    constructor(metric: RecordedMetric) {
      super({ ...base(metric), buckets: [...(metric.spec.buckets ?? [])] });
      this.metric = metric;
    }

    /** What the registry and `get` both read. */
    async getForPromString() {
      const { name, help, type } = this.metric.spec;
      return { name, help, type, values: histogramValues(this.metric) };
    }
  }

  for (const metric of recorder.all()) {
    switch (metric.spec.type) {
      case 'counter':
        new Counter({
          ...base(metric),
          collect() {
            fill(this, metric);
          },
        });
        break;
      case 'gauge':
        new Gauge({
          ...base(metric),
          collect() {
            fill(this, metric);
          },
        });
        break;
      case 'histogram':
        new RecordedHistogram(metric);
        break;
    }
  }
  return registry;
}

function fill(
  target: {
    reset(): void;
    remove(labels: object): void;
    inc(labels: Record<string, string>, value: number): void;
  },
  metric: RecordedMetric,
): void {
  target.reset();
  if (metric.samples.size === 0 && metric.spec.labels.length === 0) target.remove({});
  for (const sample of metric.samples.values()) target.inc(sample.labels, sample.value);
}

interface HistogramValue {
  readonly metricName: string;
  readonly labels: Record<string, string | number>;
  readonly sharedLabels: Record<string, string>;
  readonly value: number;
}

function histogramValues(metric: RecordedMetric): HistogramValue[] {
  const { name, buckets = [] } = metric.spec;
  const values: HistogramValue[] = [];
  for (const { labels: sharedLabels, counts, sum, count } of metric.distributions.values()) {
    let below = 0;
    for (const [index, le] of [...buckets, '+Inf'].entries()) {
      below += counts[index] ?? 0;
      values.push({ metricName: `${name}_bucket`, labels: { le }, sharedLabels, value: below });
    }
    values.push({ metricName: `${name}_sum`, labels: {}, sharedLabels, value: sum });
    values.push({ metricName: `${name}_count`, labels: {}, sharedLabels, value: count });
  }
  return values;
}
