import type { METRICS } from '../../protocol/metrics-registry.ts';

export type MetricName = (typeof METRICS)[number]['name'];
export type Labels = Readonly<Record<string, string>>;

/** Records figures of the registry. Unknown label values fold into `other`. Never throws. */
export interface Metrics {
  /** Adds `by` (default 1) to a counter. */
  add(name: MetricName, labels?: Labels, by?: number): void;
  /** Sets a gauge. */
  set(name: MetricName, value: number, labels?: Labels): void;
  /** Ends a series of a gauge: what it was about is gone. */
  remove(name: MetricName, labels: Labels): void;
  /** Records one observation of a histogram. */
  observe(name: MetricName, value: number, labels?: Labels): void;
  /** Prometheus text exposition format. */
  render(): Promise<string>;
}
