import { ERRORS, type ErrorEntry } from '../../../protocol/errors.ts';
import { EXIT_CODE_TABLE } from '../../../protocol/exit-codes.ts';
import { METRICS, type MetricSpec } from '../../../protocol/metrics-registry.ts';

/** What one name of the contract means: an error code, an exit code or a metric. Null: none of them. */
export function explain(name: string): string | null {
  return explainError(name) ?? explainExit(name) ?? explainMetric(name);
}

const KINDS: Readonly<Record<ErrorEntry['kind'], string>> = {
  configuration: 'the configuration or the command line has to change (exit 2)',
  retry: 'trying again later can help',
  permanent: 'the same call fails the same way',
  lease: 'somebody else owns the item',
};

function explainError(name: string): string | null {
  const code = name.toUpperCase().replaceAll('-', '_');
  const entry: ErrorEntry | undefined = Object.entries(ERRORS).find(([known]) => known === code)?.[1];
  if (entry === undefined) return null;
  return `${code}: ${KINDS[entry.kind]}\n\n${entry.summary}\n\nWhat to do: ${entry.remedy}\n`;
}

function explainExit(name: string): string | null {
  const row = EXIT_CODE_TABLE.find((one) => String(one.code) === name || one.name === name.toUpperCase());
  return row === undefined ? null : `exit ${row.code} ${row.name} (${row.intent})\n\n${row.when}\n`;
}

function explainMetric(name: string): string | null {
  const metric: MetricSpec | undefined = METRICS.find((one) => one.name === name);
  if (metric === undefined) return null;
  const labels = metric.labels.map((label) =>
    label.values === undefined
      ? `  ${label.name}: at most ${label.max} values, then other`
      : `  ${label.name}: ${label.values.join(', ')}`,
  );
  return `${[`${metric.name} (${metric.type})`, '', metric.help, ...(labels.length === 0 ? [] : ['', 'Labels:', ...labels])].join('\n')}\n`;
}
