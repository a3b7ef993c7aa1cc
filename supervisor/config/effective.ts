import type { Config } from './config.ts';
import { formatSecret, type SecretRef } from './secret.ts';

/**
 * The configuration in force as JSON, for `--validate-config` and `agent://config/effective`.
 * Secrets appear as the references they are (invariant 9).
 */
export function effectiveConfig(config: Config): Record<string, unknown> {
  return Object.fromEntries(Object.entries(config).map(([key, value]) => [key, view(value)]));
}

function view(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(view);
  if (typeof value !== 'object' || value === null) return value;
  if (isSecretRef(value)) return formatSecret(value);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, view(inner)]));
}

function isSecretRef(value: object): value is SecretRef {
  if (!('secret' in value)) return false;
  switch (value.secret) {
    case 'env':
      return 'name' in value && typeof value.name === 'string';
    case 'file':
      return 'path' in value && typeof value.path === 'string';
    case 'template':
      return 'parts' in value && Array.isArray(value.parts);
    default:
      return false;
  }
}
