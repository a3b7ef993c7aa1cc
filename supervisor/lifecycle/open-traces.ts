import { AGENT_VERSION } from '../../protocol/versions.ts';
import type { Config } from '../config/config.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Log } from '../telemetry/log.ts';
import { Traces } from '../telemetry/traces.ts';

/** Where traces are sent: nowhere, to an URL, or nowhere for a reason that is worth a word. */
type Target =
  | { readonly kind: 'off' }
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'unusable'; readonly reason: string };

/**
 * Where traces are sent. The variable for traces alone holds the whole URL, the general one and the
 * configuration the base of it (OTLP exporter specification). What cannot be used is no reason not to
 * start: such variables are often set for a whole cluster.
 */
export function tracesTarget(config: Config, env: NodeJS.ProcessEnv): Target {
  const given = (name: string): string => env[name] ?? '';
  if (given('OTEL_SDK_DISABLED').toLowerCase() === 'true' || given('OTEL_TRACES_EXPORTER') === 'none') {
    return { kind: 'off' };
  }
  const base = given('OTEL_EXPORTER_OTLP_ENDPOINT') || (config.observability.otelEndpoint ?? '');
  const whole = given('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT');
  const url = whole !== '' ? whole : base === '' ? '' : `${base.replace(/\/+$/, '')}/v1/traces`;
  if (url === '') return { kind: 'off' };
  const protocol = given('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') || given('OTEL_EXPORTER_OTLP_PROTOCOL');
  if (protocol === 'grpc') return { kind: 'unusable', reason: 'OTLP is spoken over HTTP, not over gRPC' };
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    return { kind: 'unusable', reason: 'the OTLP endpoint is no http:// or https:// URL' };
  }
  return { kind: 'url', url };
}

/** Without a place to send traces to nothing is loaded. Never throws: traces are not worth a start. */
export async function openTraces(
  config: Config,
  env: NodeJS.ProcessEnv,
  clock: Clock,
  log: Log,
): Promise<Traces | null> {
  const target = tracesTarget(config, env);
  if (target.kind === 'off') return null;
  if (target.kind === 'unusable') {
    log.warn('config.warn', { msg: `no traces are sent: ${target.reason}` });
    return null;
  }
  const { url } = target;
  const { instance, podUid, namespace, node } = config.identity;
  const failed = (reason: string): void => log.warn('config.warn', { msg: `traces are lost: ${reason}` });
  try {
    const { openOtlp } = await import('../telemetry/otlp.ts');
    const sink = openOtlp({
      url,
      failed,
      resource: {
        'service.name': (env.OTEL_SERVICE_NAME ?? '') === '' ? 'agentd' : env.OTEL_SERVICE_NAME,
        'service.version': AGENT_VERSION,
        'service.instance.id': instance,
        'process.pid': process.pid,
        ...(podUid === null ? {} : { 'k8s.pod.uid': podUid }),
        ...(namespace === null ? {} : { 'k8s.namespace.name': namespace }),
        ...(node === null ? {} : { 'k8s.node.name': node }),
      },
    });
    return new Traces(sink, () => clock.wall(), instance);
  } catch (error) {
    failed(error instanceof Error ? error.message : String(error));
    return null;
  }
}
