import type { Clock } from '../reactor/clock.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { ProgressParams } from './frame-intake.ts';

/** Model calls of the last minute that are kept for the rolling figures. */
const KEPT_CALLS = 1_024;
const WINDOW_MS = 60_000;

interface Call {
  readonly at: number;
  readonly durMs: number;
  readonly tokens: number;
}

/** Adds up what children report of their steps and model calls, over the whole tree. */
export class Rollup {
  private calls: Call[] = [];
  /** Whether the last call to an endpoint, by its index, succeeded. */
  private readonly endpoints = new Map<number, boolean>();
  private readonly stepsSeen = new Map<string, number>();
  /** Endpoints of the model, as of the last run started. */
  endpointCount = 1;

  constructor(
    private readonly metrics: Metrics,
    private readonly clock: Clock,
  ) {}

  /** True unless every endpoint's last call failed. */
  get anyEndpointUp(): boolean {
    if (this.endpoints.size < this.endpointCount) return true;
    return [...this.endpoints.values()].some((up) => up);
  }

  take(runId: string, progress: ProgressParams): void {
    const before = this.stepsSeen.get(runId) ?? 0;
    const { steps } = progress.usage;
    if (steps > before) {
      this.metrics.add('agent_loop_steps_total', {}, steps - before);
      this.stepsSeen.set(runId, steps);
    }
    if (progress.call !== undefined) this.takeCall(progress.call, progress.model ?? 'unknown');
  }

  /** The run is over: takes in the steps it reported last. */
  finish(runId: string, steps: number): void {
    const before = this.stepsSeen.get(runId) ?? 0;
    if (steps > before) this.metrics.add('agent_loop_steps_total', {}, steps - before);
    this.stepsSeen.delete(runId);
  }

  /** Sets the rolling gauges. */
  tick(): void {
    const since = this.clock.now() - WINDOW_MS;
    this.calls = this.calls.filter((call) => call.at >= since);
    const tokens = this.calls.reduce((sum, call) => sum + call.tokens, 0);
    this.metrics.set('agent_tokens_per_sec', tokens / (WINDOW_MS / 1_000));
    const sorted = this.calls.map((call) => call.durMs).sort((a, b) => a - b);
    this.metrics.set('agent_intelligence_latency_ms', quantile(sorted, 0.5), { quantile: 'p50' });
    this.metrics.set('agent_intelligence_latency_ms', quantile(sorted, 0.95), { quantile: 'p95' });
    this.metrics.set('agent_intel_up', this.anyEndpointUp ? 1 : 0);
    this.metrics.set('agent_intel_all_down', this.anyEndpointUp ? 0 : 1);
  }

  private takeCall(call: NonNullable<ProgressParams['call']>, model: string): void {
    this.endpoints.set(call.endpoint, call.ok);
    this.metrics.add('agent_intel_calls_total', { model });
    this.metrics.observe('agent_intel_call_duration_ms', call.dur_ms, { model });
    if (!call.ok) this.metrics.add('agent_intel_errors_total', { reason: call.reason ?? 'other' });
    if (call.tokens_in > 0) this.metrics.add('agent_tokens_total', { model, type: 'in' }, call.tokens_in);
    if (call.tokens_out > 0) this.metrics.add('agent_tokens_total', { model, type: 'out' }, call.tokens_out);
    this.calls.push({ at: this.clock.now(), durMs: call.dur_ms, tokens: call.tokens_in + call.tokens_out });
    if (this.calls.length > KEPT_CALLS) this.calls.shift();
  }
}

function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0;
}
