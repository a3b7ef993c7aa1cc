import type { CallToolRequest, CallToolResult, Tool } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { AgentdError } from '../../protocol/errors.ts';
import { META } from '../../protocol/work-tools.ts';
import { etagOf, mimeTypeFor } from './document-read.ts';
import type { DocumentPage, Inbox } from './inbox.ts';

const uri = z.string().min(1).describe('URI of the document, exactly as list or resources/list gives it');
const cursor = z.string().describe('next_cursor of the page before').optional();

const readArguments = z.object({
  uri,
  offset: z.number().int().min(0).describe('first byte; default 0').optional(),
  length: z.number().int().min(1).describe('bytes at most').optional(),
});
const completeArguments = z.object({
  uri,
  result: z.unknown().describe('what came out: text, or any JSON value'),
});
const resultsArguments = z.object({ uri: uri.optional(), cursor });
const listArguments = z.object({ cursor });

const LIST_PAGE = 200;
const RESULTS_PAGE = 50;
/** Characters of a result shown in a page of results; its file holds the whole. */
const MAX_SHOWN = 4096;
const MAX_KEY_LENGTH = 512;

type Outcome = { readonly text?: string; readonly structured: Record<string, unknown> };

interface ToolEntry {
  readonly description: string;
  readonly schema: z.ZodObject;
  call(inbox: Inbox, args: unknown, meta: Readonly<Record<string, unknown>>): Promise<Outcome>;
}

const TOOLS: Readonly<Record<string, ToolEntry>> = {
  read: {
    description:
      'Reads a document. Text comes as text, anything else as base64. Large documents come in pages: ' +
      'pass next_offset as offset to read on.',
    schema: readArguments,
    call: async (inbox, args) => {
      const { uri, offset, length } = readArguments.parse(args);
      return pageOutcome(await inbox.readPage(uri, offset ?? 0, length));
    },
  },
  complete: {
    description:
      'Files the result for a document. Calling it again with the same idempotency key changes nothing ' +
      'and returns the first outcome.',
    schema: completeArguments,
    call: async (inbox, args, meta) => {
      const { uri, result } = completeArguments.parse(args);
      const outcome = await inbox.complete({
        uri,
        result,
        key: metaText(meta, META.IDEMPOTENCY_KEY),
        runId: metaText(meta, META.RUN_ID),
        instance: metaText(meta, META.INSTANCE),
      });
      const { id, key, replayed } = outcome;
      return {
        text: `result filed for ${uri}`,
        structured: { ok: true, uri, result_id: id, idempotency_key: key, replayed },
      };
    },
  },
  results: {
    description: 'Lists results in the order they were filed, with how many each document has.',
    schema: resultsArguments,
    call: async (inbox, args) => {
      const { uri, cursor } = resultsArguments.parse(args);
      return { structured: await resultsPage(inbox, uri, cursor) };
    },
  },
  list: {
    description: 'Lists the documents of the inbox.',
    schema: listArguments,
    call: async (inbox, args) => {
      const { cursor } = listArguments.parse(args);
      const page = inbox.page(decodeCursor(cursor), LIST_PAGE);
      return {
        structured: {
          total: inbox.folder.documents.size,
          documents: page.documents.map((document) => ({
            uri: document.uri,
            size: document.state.size,
            mime_type: mimeTypeFor(document) ?? undefined,
            last_modified: new Date(document.state.mtimeMs).toISOString(),
            etag: etagOf(document.state),
            results: inbox.results.countFor(document.uri),
          })),
          ...(page.next === null ? {} : { next_cursor: encodeCursor(page.next) }),
        },
      };
    },
  },
};

/** The tools as `tools/list` shows them. */
export function inboxToolList(): Tool[] {
  return Object.entries(TOOLS).map(([name, tool]) => ({
    name,
    description: tool.description,
    inputSchema: z.toJSONSchema(tool.schema, { io: 'input' }) as Tool['inputSchema'],
    annotations: { readOnlyHint: name !== 'complete', idempotentHint: true, destructiveHint: false },
  }));
}

/** Calls a tool. What goes wrong is an answer the model can act on, never a protocol error. */
export async function callInboxTool(
  inbox: Inbox,
  params: CallToolRequest['params'],
): Promise<CallToolResult> {
  const tool = Object.hasOwn(TOOLS, params.name) ? TOOLS[params.name] : undefined;
  try {
    if (tool === undefined) throw new AgentdError('USAGE', `there is no tool ${params.name}`);
    const outcome = await tool.call(inbox, params.arguments ?? {}, params._meta ?? {});
    const text = outcome.text ?? JSON.stringify(outcome.structured);
    return { content: [{ type: 'text', text }], structuredContent: outcome.structured };
  } catch (error) {
    return failure(error);
  }
}

function failure(error: unknown): CallToolResult {
  if (error instanceof z.ZodError) {
    const problems = error.issues.map((issue) => `${issue.path.join('.') || 'arguments'}: ${issue.message}`);
    return { isError: true, content: [{ type: 'text', text: `invalid arguments: ${problems.join('; ')}` }] };
  }
  if (!(error instanceof AgentdError)) throw error;
  const remedy = error.code === 'USAGE' ? '' : ` ${error.remedy}`;
  return {
    isError: true,
    content: [{ type: 'text', text: `${error.message}.${remedy}` }],
    structuredContent: { ok: false, code: error.code, kind: error.kind },
  };
}

function pageOutcome(page: DocumentPage): Outcome {
  const { document, slice, nextOffset } = page;
  const note =
    nextOffset === null && slice.offset === 0
      ? ''
      : `\n[bytes ${slice.offset} to ${slice.offset + slice.bytes.length} of ${slice.state.size}` +
        `${nextOffset === null ? '' : `; read on with offset ${nextOffset}`}]`;
  return {
    text: page.content + note,
    structured: {
      uri: document.uri,
      size: slice.state.size,
      offset: slice.offset,
      length: slice.bytes.length,
      ...(nextOffset === null ? {} : { next_offset: nextOffset }),
      encoding: page.encoding,
      mime_type: page.mimeType ?? undefined,
      last_modified: new Date(slice.state.mtimeMs).toISOString(),
      etag: etagOf(slice.state),
    },
  };
}

async function resultsPage(inbox: Inbox, uri?: string, cursor?: string): Promise<Record<string, unknown>> {
  const { results } = inbox;
  const start = cursor === undefined ? 0 : Number(cursor);
  if (!Number.isSafeInteger(start) || start < 0)
    throw new AgentdError('USAGE', 'the cursor is not one of ours');
  const page = results.page(start, RESULTS_PAGE, uri);
  const stored = await Promise.all(page.heads.map((head) => results.read(head)));
  return {
    total: results.size,
    documents: results.documentCount,
    ...(uri === undefined ? {} : { count: results.countFor(uri) }),
    results: page.heads.map((head, index) => {
      const record = stored[index];
      return {
        result_id: head.id,
        uri: head.uri,
        idempotency_key: head.key,
        results_for_uri: results.countFor(head.uri),
        ...(record == null
          ? { missing: true }
          : {
              run_id: record.run_id,
              instance: record.instance,
              completed_at: record.completed_at,
              ...shown(record.result),
            }),
      };
    }),
    ...(page.next === null ? {} : { next_cursor: String(page.next) }),
  };
}

function shown(result: unknown): { readonly result: unknown; readonly truncated?: true } {
  const text = typeof result === 'string' ? result : (JSON.stringify(result) ?? '');
  return text.length <= MAX_SHOWN ? { result } : { result: text.slice(0, MAX_SHOWN), truncated: true };
}

function metaText(meta: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = meta[name];
  if (typeof value !== 'string' || value === '') return undefined;
  if (value.length > MAX_KEY_LENGTH) {
    throw new AgentdError('USAGE', `_meta ${name} is longer than ${MAX_KEY_LENGTH} characters`);
  }
  return value;
}

/** Cursors are paths: a page begins after one, whatever came and went since. */
export function encodeCursor(path: string): string {
  return Buffer.from(path, 'utf8').toString('base64url');
}

export function decodeCursor(cursor: string | undefined): string {
  return cursor === undefined ? '' : Buffer.from(cursor, 'base64url').toString('utf8');
}
