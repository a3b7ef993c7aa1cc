import type { ModelBlock, ModelTarget } from '../../protocol/frames.ts';
import type { ModelChoice, ReportedModelCall } from '../children/supervisor-options.ts';
import type { Config } from '../config/config.ts';
import { readHeaderSecret } from '../config/secret.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { IntelligenceHealth, type IntelligenceSnapshot } from './intelligence-health.ts';

/** The model endpoints as the supervisor sees them: it calls none, but hears of every call. */
export class Intelligence {
  private readonly health: IntelligenceHealth;
  private down = false;
  /** Endpoints configured before the present ones: runs of then report under lower numbers. */
  private earlier = 0;

  /**
   * @param config the configuration in force, asked for each run
   * @param changed all endpoints went down, or one came back
   */
  constructor(
    private readonly config: () => Pick<Config, 'intelligence' | 'tlsCa'>,
    clock: Clock,
    private readonly log: Log,
    private readonly metrics: Metrics,
    private readonly changed: () => void,
  ) {
    this.health = new IntelligenceHealth(config().intelligence.endpoints.length, clock);
  }

  get allDown(): boolean {
    return this.down;
  }

  /** What is known of the endpoints: whether one works. */
  get healthy(): boolean | 'unknown' {
    return this.health.healthy;
  }

  snapshot(): IntelligenceSnapshot {
    return this.health.snapshot();
  }

  /**
   * The model block of a run about to start, the endpoints that work first. Tokens are read now, so
   * that a rotated file is picked up by the next run.
   *
   * @throws AgentdError SECRET_UNREADABLE or SECRET_UNUSABLE when a token cannot be read or sent
   */
  choose(): ModelChoice {
    const { intelligence, tlsCa } = this.config();
    const { items, configured } = this.health.arrange(intelligence.endpoints);
    const block: ModelBlock = {
      endpoints: items.map(({ url, token }) => ({
        url,
        ...(token === null ? {} : { token: readHeaderSecret(token) }),
      })),
      ...(intelligence.model === null ? {} : { model: intelligence.model }),
      timeout_ms: intelligence.timeoutMs,
      max_attempts: intelligence.maxAttempts,
      ...(tlsCa === null ? {} : { tls_ca: tlsCa }),
    };
    return { block, configured: configured.map((place) => this.earlier + place) };
  }

  /** What children without a run hold a connection to: the endpoint that the next run would try first. */
  held(): ModelTarget | null {
    const { intelligence, tlsCa } = this.config();
    const { endpoints, holdConnection } = intelligence;
    const url = endpoints[this.health.preferred]?.url;
    if (!holdConnection || url === undefined || url.startsWith('script:')) return null;
    return { origin: new URL(url).origin, ...(tlsCa === null ? {} : { tls_ca: tlsCa }) };
  }

  /** The endpoints are others now: nothing is known about them, and reports about the old ones count no more. */
  reset(before: number): void {
    this.earlier += before;
    this.health.reset(this.config().intelligence.endpoints.length);
    this.look();
  }

  /** A child reports a model call. */
  record(call: ReportedModelCall): void {
    const { metrics } = this;
    const { model } = call;
    metrics.add('agent_intel_calls_total', { model });
    metrics.observe('agent_intel_call_duration_ms', call.durMs, { model });
    if (!call.ok) metrics.add('agent_intel_errors_total', { reason: call.reason ?? 'other' });
    if (call.tokensIn > 0) metrics.add('agent_tokens_total', { model, type: 'in' }, call.tokensIn);
    if (call.tokensOut > 0) metrics.add('agent_tokens_total', { model, type: 'out' }, call.tokensOut);
    const change = this.health.record({ ...call, endpoint: call.endpoint - this.earlier });
    if (change !== null) {
      const up = change.to === 'closed';
      this.log.write(up ? 'info' : 'warn', 'intel.result', {
        endpoint: change.endpoint,
        msg: up ? 'the model endpoint works again' : 'the model endpoint fails and is avoided for a while',
      });
    }
    this.look();
  }

  /** Sets the gauges, and notices endpoints whose time of avoidance is over. */
  publish(): void {
    const { metrics } = this;
    const { latency_ms, tokens_per_sec } = this.health.snapshot();
    metrics.set('agent_tokens_per_sec', tokens_per_sec);
    metrics.set('agent_intelligence_latency_ms', latency_ms?.p50 ?? 0, { quantile: 'p50' });
    metrics.set('agent_intelligence_latency_ms', latency_ms?.p95 ?? 0, { quantile: 'p95' });
    metrics.set('agent_intel_up', this.down ? 0 : 1);
    metrics.set('agent_intel_all_down', this.down ? 1 : 0);
    this.look();
  }

  private look(): void {
    const down = this.health.allDown;
    if (down === this.down) return;
    this.down = down;
    this.changed();
  }
}
