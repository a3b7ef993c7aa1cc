import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { METRICS, type MetricSpec, OTHER } from '../../../protocol/metrics-registry.ts';

const FOLDER = join(import.meta.dirname, '../../../examples/observability');
const specs = new Map<string, MetricSpec>(METRICS.map((spec) => [spec.name, spec]));
/** Labels every scrape has beside those of the registry. */
const SCRAPE_LABELS = ['job', 'instance', 'le'];

/** The metric a series name of an expression belongs to. */
function metricOf(series: string): MetricSpec | undefined {
  const base = specs.get(series);
  if (base !== undefined) return base.type === 'histogram' ? undefined : base;
  const match = /^(.*)_(?:bucket|sum|count)$/.exec(series);
  const histogram = specs.get(match?.[1] ?? '');
  return histogram?.type === 'histogram' ? histogram : undefined;
}

/** What is wrong with the names in one PromQL expression. */
function problems(expr: string): string[] {
  const found: string[] = [];
  const bare = expr.replace(/"(?:[^"\\]|\\.)*"/g, '""');
  const metrics: MetricSpec[] = [];
  for (const [series] of bare.matchAll(/\bagent_\w+/g)) {
    const metric = metricOf(series);
    if (metric === undefined) found.push(`no series ${series}`);
    else metrics.push(metric);
  }
  const labels = new Map(metrics.flatMap((metric) => metric.labels.map((label) => [label.name, label])));
  const isKnown = (name: string): boolean => labels.has(name) || SCRAPE_LABELS.includes(name);
  for (const [, names = ''] of bare.matchAll(/\bby \(([^)]*)\)/g)) {
    for (const name of names.split(',').map((text) => text.trim())) {
      if (!isKnown(name)) found.push(`no label ${name}`);
    }
  }
  for (const [, name = '', operator = '', value = ''] of expr.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)) {
    if (!isKnown(name)) found.push(`no label ${name}`);
    const values = labels.get(name)?.values;
    if (values === undefined) continue;
    for (const one of operator.endsWith('~') ? value.split('|') : [value]) {
      if (!values.includes(one) && one !== OTHER) found.push(`${name} is never ${one}`);
    }
  }
  for (const [open, close] of ['()', '{}', '[]']) {
    if (bare.split(open ?? '').length !== bare.split(close ?? '').length)
      found.push(`unbalanced ${open}${close}`);
  }
  return found;
}

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string }[];
}
const dashboard: { readonly panels: readonly Panel[] } = JSON.parse(
  readFileSync(join(FOLDER, 'grafana-dashboard.json'), 'utf8'),
);
const expressions = dashboard.panels.flatMap((panel) => (panel.targets ?? []).map((target) => target.expr));

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string };
}
const alerts: { readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[] } =
  parse(readFileSync(join(FOLDER, 'alerts.yaml'), 'utf8'));
const rules = alerts.groups.flatMap((group) => group.rules);

describe('the observability examples', () => {
  it('are checked by something that finds mistakes', () => {
    expect(problems('sum by (status) (rate(agent_runs_total{status="completed"}[5m]))')).toEqual([]);
    expect(problems('agent_run_total')).toEqual(['no series agent_run_total']);
    expect(problems('agent_run_duration_ms')).toEqual(['no series agent_run_duration_ms']);
    expect(problems('agent_runs_total{status=~"completed|lost"}')).toEqual(['status is never lost']);
    expect(problems('sum by (shard) (agent_up)')).toEqual(['no label shard']);
    expect(problems('sum(agent_up')).toEqual(['unbalanced ()']);
  });

  it('have a dashboard that uses only series, labels and values of the registry', () => {
    expect(expressions.length).toBeGreaterThan(40);
    expect(expressions.flatMap(problems)).toEqual([]);
  });

  it('have a dashboard that shows every metric but the alias', () => {
    const shown = new Set(
      expressions.flatMap((expr) => [...expr.matchAll(/\bagent_\w+/g)].map(([name]) => metricOf(name)?.name)),
    );
    const missing = [...specs.keys()].filter((name) => !shown.has(name));
    expect(missing).toEqual(['agent_intel_up', 'agent_reactive_backlog']);
  });

  it('have a dashboard whose panels do not overlap', () => {
    const { panels } = dashboard;
    expect(new Set(panels.map((panel) => panel.id)).size).toBe(panels.length);
    for (const [index, { gridPos: a, title }] of panels.entries()) {
      expect(a.x + a.w, title).toBeLessThanOrEqual(24);
      for (const { gridPos: b, title: other } of panels.slice(index + 1)) {
        const apart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
        expect(apart, `${title} / ${other}`).toBe(true);
      }
    }
  });

  it('have alert rules that use only names of the registry and say what to do', () => {
    expect(rules.length).toBeGreaterThan(10);
    expect(new Set(rules.map((rule) => rule.alert)).size).toBe(rules.length);
    for (const rule of rules) {
      expect(problems(rule.expr), rule.alert).toEqual([]);
      expect(['critical', 'warning', 'info']).toContain(rule.labels.severity);
      expect(rule.annotations.summary.length).toBeGreaterThan(10);
      expect(rule.annotations.description.length).toBeGreaterThan(10);
      for (const [, name = ''] of rule.annotations.summary.matchAll(/\$labels\.(\w+)/g)) {
        const labels = [...rule.expr.matchAll(/\bagent_\w+/g)].flatMap(
          ([series]) => metricOf(series)?.labels.map((label) => label.name) ?? [],
        );
        expect([...SCRAPE_LABELS, ...labels], rule.alert).toContain(name);
      }
    }
  });
});
