import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { type DocumentName, documentSchemas } from '../../../scripts/print-schemas.ts';

/** Validators of the printed JSON Schemas, by somebody else's library (ajv, draft 2020-12). */
const ajv = new Ajv2020({
  strict: true,
  allowUnionTypes: true,
  allErrors: true,
  formats: { 'date-time': (text: string) => !Number.isNaN(Date.parse(text)) },
});
const schemas = documentSchemas();
const compiled = new Map<DocumentName, ValidateFunction>();

/** What is wrong with a document; empty when it is valid. */
export function schemaProblems(name: DocumentName, document: unknown): string[] {
  let validate = compiled.get(name);
  if (validate === undefined) {
    validate = ajv.compile(schemas[name]);
    compiled.set(name, validate);
  }
  if (validate(document)) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${name}${instancePath}: ${message}`);
}
