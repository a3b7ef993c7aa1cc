import { METRICS, type MetricLabel, type MetricSpec, OTHER } from '../../protocol/metrics-registry.ts';
import { VERSIONS } from '../../protocol/versions.ts';
import { code, page, table } from './markdown.ts';

/** docs/metrics.md, from the registry. */
export function metricsPage(): string {
  const specs: readonly MetricSpec[] = METRICS;
  return page(
    '# Metrics',
    `Served as Prometheus text on \`/metrics\` of \`--metrics-addr\`, metrics_schema ${VERSIONS.metrics_schema}. ` +
      'Figures of children are added up in the supervisor, so one scrape tells the truth for the whole tree.',
    `Label values come from closed sets; anything else is \`${OTHER}\`. Open sets keep the first values they ` +
      `see, up to the number given, and fold the rest into \`${OTHER}\`. The number of series is therefore ` +
      'bounded. No label ever holds a run, agent, session, URI or shard.',
    table(
      ['metric', 'type', 'labels', 'meaning'],
      specs.map((spec) => [code(spec.name), spec.type, spec.labels.map(label).join('; '), meaning(spec)]),
    ),
    '## Buckets',
    table(
      ['histogram', 'upper bounds'],
      specs
        .filter((spec) => spec.buckets !== undefined)
        .map((spec) => [code(spec.name), (spec.buckets ?? []).join(', ')]),
    ),
  );
}

function label({ name, values, max }: MetricLabel): string {
  return values === undefined ? `${code(name)} (at most ${max})` : `${code(name)}: ${values.join(', ')}`;
}

function meaning(spec: MetricSpec): string {
  return spec.optional ? `${spec.help} Absent where there is no such figure.` : spec.help;
}
