import { z } from 'zod';
import { configSchema } from './schema.ts';

/** The JSON Schema (draft 2020-12) of a configuration file, for `--config-schema`. */
export function configJsonSchema(): Record<string, unknown> {
  const { $schema, ...schema } = z.toJSONSchema(configSchema, {
    io: 'input',
    target: 'draft-2020-12',
    unrepresentable: 'any',
  });
  const { shard, ...properties } = schema.properties ?? {};
  return {
    $schema,
    title: 'agentd configuration',
    ...schema,
    properties: {
      ...properties,
      // The short form is expanded before validation, so the schema of the long form does not show it.
      shard: {
        description: 'Part of the items that are ours.',
        anyOf: [{ type: 'string', pattern: '^(auto|\\d+)/\\d+$' }, shard],
      },
    },
  };
}
