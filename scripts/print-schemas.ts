import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { EVENT_NAMES, eventLine, eventsPage } from '../protocol/event-line.ts';
import { EXIT_CODE_TABLE } from '../protocol/exit-codes.ts';
import {
  capacityDocument,
  inventoryDocument,
  operatorResult,
  sessionDocument,
  statusDocument,
  subagentDocument,
  subagentResultDocument,
} from '../protocol/management.ts';
import { capabilitiesManifest } from '../protocol/manifest.ts';
import { METRICS } from '../protocol/metrics-registry.ts';
import { runReport } from '../protocol/run-report.ts';
import { TERMINAL_STATUSES } from '../protocol/terminal-status.ts';
import { VERSIONS } from '../protocol/versions.ts';
import { configJsonSchema } from '../supervisor/config/json-schema.ts';

/**
 * `npm run schemas`: the frozen contract as one JSON document on standard output, for readers in
 * other languages. `npm run schemas -- NAME` prints one schema alone.
 */

type JsonSchema = Readonly<Record<string, unknown>>;

const DOCUMENTS = {
  manifest: capabilitiesManifest,
  run_report: runReport,
  event_line: eventLine,
  events_page: eventsPage,
  status: statusDocument,
  inventory: inventoryDocument,
  capacity: capacityDocument,
  session: sessionDocument,
  subagent: subagentDocument,
  subagent_result: subagentResultDocument,
  operator_result: operatorResult,
} as const satisfies Record<string, z.ZodType>;

export type DocumentName = keyof typeof DOCUMENTS | 'config';

/** JSON Schemas (draft 2020-12) by document. Open, as readers ignore what they do not know, but for the configuration. */
export function documentSchemas(): Readonly<Record<DocumentName, JsonSchema>> {
  const schemas = Object.entries(DOCUMENTS).map(([name, schema]) => [
    name,
    z.toJSONSchema(schema, { io: 'input', target: 'draft-2020-12' }),
  ]);
  return {
    ...(Object.fromEntries(schemas) as Record<keyof typeof DOCUMENTS, JsonSchema>),
    config: configJsonSchema(),
  };
}

function contractDocument(): JsonSchema {
  return {
    ...VERSIONS,
    terminal_statuses: TERMINAL_STATUSES,
    exit_code_table: EXIT_CODE_TABLE,
    event_names: EVENT_NAMES,
    metrics: METRICS,
    schemas: documentSchemas(),
  };
}

function main(name: string | undefined): void {
  const schemas: Readonly<Record<string, JsonSchema>> = documentSchemas();
  const wanted = name === undefined ? contractDocument() : schemas[name];
  if (wanted === undefined) {
    console.error(`there is no document ${name}; the documents are ${Object.keys(schemas).join(', ')}`);
    process.exitCode = 2;
    return;
  }
  console.log(JSON.stringify(wanted, null, 2));
}

if (resolve(process.argv[1] ?? '') === fileURLToPath(import.meta.url)) main(process.argv[2]);
