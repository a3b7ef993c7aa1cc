import { ScaledObject } from '@kubernetes-models/keda/keda.sh/v1alpha1/ScaledObject';
import { PodMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor';
import { Deployment } from 'kubernetes-models/apps/v1/Deployment';
import { StatefulSet } from 'kubernetes-models/apps/v1/StatefulSet';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import { CronJob } from 'kubernetes-models/batch/v1/CronJob';
import { Job } from 'kubernetes-models/batch/v1/Job';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap';
import { PersistentVolumeClaim } from 'kubernetes-models/v1/PersistentVolumeClaim';
import { Service } from 'kubernetes-models/v1/Service';

/**
 * Kubernetes manifests against the schemas that are published for them: the API's own (1.33), KEDA's and
 * the Prometheus Operator's.
 */

interface Schema {
  readonly apiVersion: string;
  readonly kind: string;
  /** Of every instance: throws a sentence for each place that is not as the schema has it. */
  readonly prototype: { validate(): void };
}

const SCHEMAS = new Map(
  (
    [
      ConfigMap,
      CronJob,
      Deployment,
      HorizontalPodAutoscaler,
      Job,
      NetworkPolicy,
      PersistentVolumeClaim,
      PodDisruptionBudget,
      PodMonitor,
      ScaledObject,
      Service,
      StatefulSet,
    ] satisfies readonly Schema[]
  ).map((schema): [string, Schema] => [`${schema.apiVersion} ${schema.kind}`, schema]),
);

/**
 * What `kubectl apply --validate=strict` would say against a manifest; empty when nothing. The published
 * schemas are open, so unknown fields are looked for here: a field that the schema's validator does not
 * read is one that the schema does not have.
 */
export function complaints(manifest: unknown): string[] {
  const { apiVersion, kind } = manifest as { readonly apiVersion?: string; readonly kind?: string };
  const schema = SCHEMAS.get(`${apiVersion} ${kind}`);
  if (schema === undefined) return [`there is no schema for ${kind} of ${apiVersion}`];
  const unread = new Set<string>();
  const found: string[] = [];
  try {
    schema.prototype.validate.call(watched(manifest, '', unread));
  } catch (error) {
    found.push(error instanceof Error ? error.message : String(error));
  }
  return [...found, ...[...unread].map((path) => `unknown field ${path}`)];
}

/** A view of `value` that takes each field out of `unread` when it is read. */
function watched(value: unknown, path: string, unread: Set<string>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one, index) => watched(one, `${path}[${index}]`, unread));
  const fields = Object.entries(value).map(([key, field]): [string, unknown] => {
    const place = path === '' ? key : `${path}.${key}`;
    unread.add(place);
    return [key, watched(field, place, unread)];
  });
  return new Proxy(Object.fromEntries(fields), {
    get(target, key) {
      unread.delete(path === '' ? String(key) : `${path}.${String(key)}`);
      return Reflect.get(target, key);
    },
  });
}
