import {
  type Attributes,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  type IdGenerator,
  NodeTracerProvider,
  RandomIdGenerator,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-node';
import { parseTraceparent, type TraceContext } from './trace.ts';
import type { EndedSpan, SpanSink } from './traces.ts';

export interface OtlpOptions {
  /** URL traces are posted to. */
  readonly url: string;
  readonly resource: Attributes;
  /** An export failed; told of the first in a row. */
  readonly failed: (reason: string) => void;
}

/** Spans that may wait for a collector; more are dropped. */
const MAX_QUEUED = 2_048;
const BATCH = 512;
const BATCH_EVERY_MS = 1_000;
/** Longest one export may take, ms. */
const EXPORT_MS = 5_000;

/** Ids of spans that are already known elsewhere: a server or an endpoint was told them. */
class GivenIds implements IdGenerator {
  private readonly random = new RandomIdGenerator();
  private next: TraceContext | null = null;

  give(context: TraceContext): void {
    this.next = context;
  }

  generateTraceId(): string {
    return this.next?.traceId ?? this.random.generateTraceId();
  }

  generateSpanId(): string {
    return this.next?.spanId ?? this.random.generateSpanId();
  }
}

/**
 * Sends spans by OTLP over HTTP. Loaded only where traces are asked for. Headers, timeouts and
 * compression are read from the usual variables by the exporter.
 */
export function openOtlp({ url, resource, failed }: OtlpOptions): SpanSink {
  const ids = new GivenIds();
  const exporter = telling(new OTLPTraceExporter({ url, timeoutMillis: EXPORT_MS }), failed);
  const provider = new NodeTracerProvider({
    idGenerator: ids,
    resource: resourceFromAttributes(resource),
    spanProcessors: [
      new BatchSpanProcessor(exporter, {
        maxQueueSize: MAX_QUEUED,
        maxExportBatchSize: BATCH,
        scheduledDelayMillis: BATCH_EVERY_MS,
        exportTimeoutMillis: EXPORT_MS,
      }),
    ],
  });
  const tracer = provider.getTracer('agentd');
  return {
    ended: (span) => {
      try {
        const own = parseTraceparent(span.traceparent);
        if (own === null) return;
        ids.give(own);
        const { name, startedAt, attributes, error } = span;
        const kind = span.kind === 'client' ? SpanKind.CLIENT : SpanKind.INTERNAL;
        const all = { ...attributes, ...(error === null ? {} : { 'error.type': error }) };
        const made = tracer.startSpan(
          name,
          { kind, startTime: startedAt, attributes: all },
          under(span, own),
        );
        if (error !== null) made.setStatus({ code: SpanStatusCode.ERROR, message: error });
        made.end(span.endedAt);
      } catch {
        // Losing telemetry never changes a result (invariant 10).
      }
    },
    flush: async (budgetMs) => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(() => {
          failed('the last ones were not taken in time');
          resolve();
        }, budgetMs);
      });
      await Promise.race([provider.forceFlush().catch(() => undefined), late]);
      clearTimeout(timer);
    },
  };
}

/** The context a span stands under. A root that is not to be sampled is told so by a parent without. */
function under({ parent }: EndedSpan, own: TraceContext) {
  const context = parent === null ? null : parseTraceparent(parent);
  if (context === null) return ROOT_CONTEXT;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId: own.traceId,
    spanId: context.spanId,
    traceFlags: context.sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
  });
}

/** Says when exports begin to fail; an exporter that answers again may fail anew. */
function telling(exporter: SpanExporter, failed: (reason: string) => void): SpanExporter {
  let failing = false;
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const now = result.error !== undefined || result.code !== 0;
        if (now && !failing) failed(result.error?.message ?? 'the collector refused them');
        failing = now;
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  };
}
