/** Versions advertised in the manifest (contract, section 1). */
export const VERSIONS = {
  contract_version: '1.0',
  metrics_schema: '1.2',
  report_schema: '1.0',
  events_schema: '1.0',
  exit_codes: '1.0',
} as const;

/** Put in by the bundler from package.json; absent when the sources run as they are. */
declare const __AGENTD_VERSION__: string | undefined;

/** The version of this build. */
export const AGENT_VERSION: string =
  typeof __AGENTD_VERSION__ === 'string' ? __AGENTD_VERSION__ : '0.0.0-source';
