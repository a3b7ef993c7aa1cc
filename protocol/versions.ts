/** Versions advertised in the manifest (contract, section 1). */
export const VERSIONS = {
  contract_version: '1.0',
  metrics_schema: '1.2',
  report_schema: '1.0',
  events_schema: '1.0',
  exit_codes: '1.0',
} as const;
