import { ulid } from 'ulid';
import type { CapabilitiesManifest } from '../../protocol/manifest.ts';
import { AGENT_VERSION } from '../../protocol/versions.ts';
import type { Config } from '../config/config.ts';
import { buildManifest } from '../config/manifest.ts';

/** The manifest of a supervisor that has not started: what is configured, and nothing known live. */
export function describeCapabilities(config: Config): CapabilitiesManifest {
  return buildManifest(config, {
    runId: config.runId ?? ulid(),
    agentVersion: AGENT_VERSION,
    intelligenceHealthy: 'unknown',
    management: config.serve?.url ?? false,
    metrics: config.observability.metricsAddr ?? false,
  });
}
