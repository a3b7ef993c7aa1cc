import { type MetricLabel, type MetricSpec, OTHER } from '../../protocol/metrics-registry.ts';
import type { Labels } from './metrics.ts';

/** Longest label value kept, UTF-16 units. */
const MAX_LABEL_CHARS = 128;

/**
 * Keeps label values inside the sets of the registry, so that the number of series is bounded
 * whatever peers call themselves: an unknown value of a closed set becomes `other`, and so does
 * every value of an open set after the first `max`.
 */
export class LabelFolding {
  /** The values seen of each open set, shared by all metrics that carry the label. */
  private readonly seen = new Map<string, Set<string>>();

  /** The values of the metric's labels, in the order of the registry. */
  values(spec: MetricSpec, labels: Labels): string[] {
    return spec.labels.map((label) => this.fold(label, labels[label.name]));
  }

  private fold(label: MetricLabel, value: string | undefined): string {
    if (value === undefined) return OTHER;
    if (label.values !== undefined) return label.values.includes(value) ? value : OTHER;
    const kept = value.slice(0, MAX_LABEL_CHARS);
    const seen = this.seen.get(label.name) ?? new Set();
    this.seen.set(label.name, seen);
    if (seen.has(kept)) return kept;
    if (seen.size >= (label.max ?? 16)) return OTHER;
    seen.add(kept);
    return kept;
  }
}
