import { describe, expect, it } from 'vitest';
import { METRICS, type MetricSpec } from '../../../protocol/metrics-registry.ts';
import type { MetricName } from '../../../supervisor/telemetry/metrics.ts';
import { createMetrics } from '../../../supervisor/telemetry/metrics-exporter.ts';

interface Series {
  readonly name: string;
  readonly labels: Record<string, string>;
  readonly value: number;
}

/** A strict reader of the Prometheus text format, written from its specification. */
function parseExposition(text: string): { series: Series[]; help: Set<string>; type: Map<string, string> } {
  const series: Series[] = [];
  const help = new Set<string>();
  const type = new Map<string, string>();
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const comment = /^# (HELP|TYPE) ([a-zA-Z_:][\w:]*) (.+)$/.exec(line);
    if (comment !== null) {
      const [, kind, name = '', rest = ''] = comment;
      if (kind === 'HELP') help.add(name);
      else type.set(name, rest);
      continue;
    }
    const match =
      /^([a-zA-Z_:][\w:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?[\d.e+-]+|\+Inf)$/.exec(
        line,
      );
    if (match === null) throw new Error(`not a line of the exposition format: ${JSON.stringify(line)}`);
    const [, name = '', body = '', value = ''] = match;
    const labels: Record<string, string> = {};
    for (const [, key = '', raw = ''] of body.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)) {
      labels[key] = raw.replace(/\\(.)/g, (_all, char: string) => (char === 'n' ? '\n' : char));
    }
    series.push({ name, labels, value: Number(value) });
  }
  return { series, help, type };
}

const seriesValue = (series: readonly Series[], name: string, labels: Record<string, string> = {}) =>
  series.find(
    (one) =>
      one.name === name &&
      JSON.stringify(Object.entries(one.labels).sort()) === JSON.stringify(Object.entries(labels).sort()),
  )?.value;

const specs: readonly MetricSpec[] = METRICS;

describe('the metrics exporter', () => {
  it('exposes every metric of the registry with HELP and TYPE, and nothing else', async () => {
    const { help, type, series } = parseExposition(await createMetrics().render());
    const names = specs.map((spec) => spec.name);
    expect([...help].sort()).toEqual([...names].sort());
    expect(Object.fromEntries(type)).toEqual(Object.fromEntries(specs.map((spec) => [spec.name, spec.type])));
    for (const one of series) expect(names).toContain(one.name);
  });

  it('shows what was recorded before the first scrape, and counts on after it', async () => {
    const metrics = createMetrics();
    metrics.add('agent_reactions_total', {}, 3);
    metrics.observe('agent_run_duration_ms', 70, { status: 'completed' });
    await metrics.render();
    metrics.add('agent_reactions_total');
    metrics.observe('agent_run_duration_ms', 1e9, { status: 'completed' });
    const { series } = parseExposition(await metrics.render());
    expect(seriesValue(series, 'agent_reactions_total')).toBe(4);
    const status = 'completed';
    expect(seriesValue(series, 'agent_run_duration_ms_bucket', { status, le: '50' })).toBe(0);
    expect(seriesValue(series, 'agent_run_duration_ms_bucket', { status, le: '100' })).toBe(1);
    expect(seriesValue(series, 'agent_run_duration_ms_bucket', { status, le: '600000' })).toBe(1);
    expect(seriesValue(series, 'agent_run_duration_ms_bucket', { status, le: '+Inf' })).toBe(2);
    expect(seriesValue(series, 'agent_run_duration_ms_count', { status })).toBe(2);
    expect(seriesValue(series, 'agent_run_duration_ms_sum', { status })).toBe(1e9 + 70);
  });

  it('starts counters over closed sets at zero and leaves optional figures out until they are set', async () => {
    const metrics = createMetrics();
    const before = parseExposition(await metrics.render()).series;
    expect(seriesValue(before, 'agent_runs_total', { status: 'deadline' })).toBe(0);
    expect(seriesValue(before, 'agent_draining')).toBe(0);
    for (const name of ['agent_memory_max_bytes', 'agent_budget_tokens_remaining']) {
      expect(seriesValue(before, name)).toBeUndefined();
    }
    metrics.set('agent_memory_max_bytes', 5);
    expect(seriesValue(parseExposition(await metrics.render()).series, 'agent_memory_max_bytes')).toBe(5);
  });

  it('folds values outside a closed set, and absent labels, into other', async () => {
    const metrics = createMetrics();
    metrics.add('agent_runs_total', { status: 'run-01HZX' });
    metrics.add('agent_runs_total', {});
    metrics.add('agent_tokens_total', { model: 'm', type: 'sideways', extra: 'ignored' }, 2);
    const { series } = parseExposition(await metrics.render());
    expect(seriesValue(series, 'agent_runs_total', { status: 'other' })).toBe(2);
    expect(seriesValue(series, 'agent_tokens_total', { model: 'm', type: 'other' })).toBe(2);
  });

  it('keeps the number of series flat over 10,000 unique values', async () => {
    const metrics = createMetrics();
    const burst = (from: number) => {
      for (let i = from; i < from + 10_000; i++) {
        metrics.add('agent_tool_calls_total', { server: `s${i}`, tool: `t${i}`, ok: 'true' });
        metrics.observe('agent_tool_call_duration_ms', i, { server: `s${i}`, tool: `t${i}` });
        metrics.add('agent_runs_total', { status: `run-${i}` });
        metrics.set('agent_mcp_up', 1, { server: `s${i}` });
      }
    };
    burst(0);
    const first = parseExposition(await metrics.render()).series;
    burst(10_000);
    const second = parseExposition(await metrics.render()).series;
    expect(second.length).toBe(first.length);
    const servers = new Set(
      second.filter((one) => one.name === 'agent_mcp_up').map((one) => one.labels.server),
    );
    expect(servers.size).toBe(17);
    expect(servers).toContain('other');
  });

  it('escapes quotes, backslashes and newlines in a server name, so that the scrape still parses', async () => {
    const metrics = createMetrics();
    const server = 'a"b\\c\nd{e="f"} 1\n# TYPE';
    metrics.set('agent_mcp_up', 1, { server });
    expect(seriesValue(parseExposition(await metrics.render()).series, 'agent_mcp_up', { server })).toBe(1);
  });

  it('shows the backlog alias with the value of agent_pending_events, whichever is set', async () => {
    const metrics = createMetrics();
    metrics.set('agent_pending_events', 7);
    expect(seriesValue(parseExposition(await metrics.render()).series, 'agent_reactive_backlog')).toBe(7);
    metrics.set('agent_reactive_backlog', 2);
    expect(seriesValue(parseExposition(await metrics.render()).series, 'agent_pending_events')).toBe(2);
  });

  it('ignores what is no figure and names that are not registered', async () => {
    const metrics = createMetrics();
    const before = await metrics.render();
    metrics.add('agent_reactions_total', {}, Number.NaN);
    metrics.add('agent_reactions_total', {}, -1);
    metrics.set('agent_saturation', Number.POSITIVE_INFINITY);
    metrics.observe('agent_run_duration_ms', Number.NaN, { status: 'completed' });
    metrics.add('agent_surprise_total' as MetricName);
    metrics.set('agent_reactions_total', 5);
    expect(await metrics.render()).toBe(before);
  });

  it('gives the same answer to scrapes that run at once', async () => {
    const metrics = createMetrics();
    metrics.add('agent_reactions_total', {}, 5);
    const answers = await Promise.all([metrics.render(), metrics.render(), metrics.render()]);
    expect(new Set(answers).size).toBe(1);
    expect(seriesValue(parseExposition(answers[0]).series, 'agent_reactions_total')).toBe(5);
  });
});
