import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventsPage } from '../../../scripts/docs/events-page.ts';
import { metricsPage } from '../../../scripts/docs/metrics-page.ts';
import { readinessOf } from '../../../supervisor/lifecycle/readiness.ts';

const doc = (name: string): string => readFileSync(join(import.meta.dirname, '../../../docs', name), 'utf8');

describe('the documentation of telemetry', () => {
  it('lists the metrics of the registry and nothing else', () => {
    expect(doc('metrics.md')).toBe(metricsPage());
  });

  it('lists the events of the vocabulary and nothing else', () => {
    expect(doc('events.md')).toBe(eventsPage());
  });

  it('explains every reason for not being ready', () => {
    const facts = { paused: true, lameDuck: true, intelligenceAllDown: true, cannotSpawn: true, deaf: ['a'] };
    const reasons = (['starting', 'draining'] as const).flatMap(
      (phase) => readinessOf({ ...facts, phase }).reasons,
    );
    for (const reason of [...reasons, 'stalled', 'stopped']) {
      expect(doc('observability.md')).toContain(`| \`${reason}\` |`);
    }
  });
});
