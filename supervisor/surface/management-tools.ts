import type { CallToolRequest, CallToolResult, Tool } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { AgentdError } from '../../protocol/errors.ts';
import { type ArgumentsOf, type ManagementTool, managementArguments } from '../../protocol/management.ts';
import type { ManagementPort } from './management-port.ts';

type Structured = Readonly<Record<string, unknown>>;

interface ToolEntry<T extends ManagementTool> {
  readonly description: string;
  readonly readOnly: boolean;
  call(port: ManagementPort, args: ArgumentsOf<T>): Structured | Promise<Structured>;
}

const TOOLS: { readonly [T in ManagementTool]: ToolEntry<T> } = {
  status: {
    description: 'How this instance stands: phase, readiness, load.',
    readOnly: true,
    call: (port) => port.status(),
  },
  'subagent.spawn': {
    description: 'Starts a subagent on an instruction and returns its handle.',
    readOnly: false,
    call: async (port, request) => {
      const { handle, runId } = await port.spawn(request);
      return { handle, run_id: runId };
    },
  },
  'subagent.send': {
    description: 'Sends a message to the warm session behind a handle.',
    readOnly: false,
    call: async (port, { handle, message }) => {
      await port.send(handle, message);
      return { ok: true, handle };
    },
  },
  'subagent.cancel': {
    description: 'Stops a running subagent and everything below it.',
    readOnly: false,
    call: async (port, { handle, reason }) => {
      if (!(await port.cancel(handle, reason ?? null))) throw unknownSubagent(handle);
      return { ok: true, handle };
    },
  },
  'subagent.status': {
    description: 'How a subagent stands.',
    readOnly: true,
    call: (port, { handle }) => {
      const found = port.subagent(handle);
      if (found === null) throw unknownSubagent(handle);
      return found;
    },
  },
  subscribe: {
    description: 'Watches a further resource, or a glob of them, on one of the MCP servers.',
    readOnly: false,
    call: async (port, { server, uri }) => {
      await port.watch(server, uri);
      return { ok: true, server, uri };
    },
  },
  unsubscribe: {
    description: 'Ends such a watch.',
    readOnly: false,
    call: async (port, { server, uri }) => {
      await port.unwatch(server, uri);
      return { ok: true, server, uri };
    },
  },
  'resource.read': {
    description: 'Reads a resource of one of the MCP servers over the connection of this instance.',
    readOnly: true,
    call: async (port, { server, uri }) => {
      const { text, mimeType } = await port.readResource(server, uri);
      return { server, uri, text, ...(mimeType === null ? {} : { mime_type: mimeType }) };
    },
  },
  assign: {
    description: 'Gives this instance an item to work on.',
    readOnly: false,
    call: async (port, { server, uri }) => {
      await port.assign(server, uri);
      return { ok: true, server, uri };
    },
  },
};

/** The tools as `tools/list` shows them. */
export function managementToolList(): Tool[] {
  return toolNames().map((name) => ({
    name,
    description: TOOLS[name].description,
    inputSchema: z.toJSONSchema(managementArguments[name], { io: 'input' }) as Tool['inputSchema'],
    annotations: { readOnlyHint: TOOLS[name].readOnly },
  }));
}

/** Calls a tool. What goes wrong is an answer with a code, never a protocol error. */
export async function callManagementTool(
  port: ManagementPort,
  params: CallToolRequest['params'],
): Promise<CallToolResult> {
  const name = toolNames().find((known) => known === params.name);
  try {
    if (name === undefined) throw new AgentdError('USAGE', `there is no tool ${params.name}`);
    const structured = await invoke(port, name, params.arguments ?? {});
    return {
      content: [{ type: 'text', text: JSON.stringify(structured) }],
      structuredContent: { ...structured },
    };
  } catch (error) {
    return failure(error);
  }
}

function invoke<T extends ManagementTool>(
  port: ManagementPort,
  name: T,
  args: unknown,
): Structured | Promise<Structured> {
  // The schema of `name` yields the arguments of `name`; the compiler does not follow that far.
  return TOOLS[name].call(port, managementArguments[name].parse(args) as ArgumentsOf<T>);
}

function toolNames(): ManagementTool[] {
  return Object.keys(TOOLS) as ManagementTool[];
}

/** The error for a handle nobody runs under. */
export function unknownSubagent(handle: string): AgentdError {
  return new AgentdError('SUBAGENT_UNKNOWN', `there is no running subagent ${handle}`);
}

function failure(error: unknown): CallToolResult {
  if (error instanceof z.ZodError) {
    return {
      isError: true,
      content: [{ type: 'text', text: `invalid arguments: ${describeIssues(error)}` }],
    };
  }
  if (!(error instanceof AgentdError)) throw error;
  const remedy = error.code === 'USAGE' ? '' : ` ${error.remedy}`;
  return {
    isError: true,
    content: [{ type: 'text', text: `${error.message}.${remedy}` }],
    structuredContent: { ok: false, code: error.code, kind: error.kind },
  };
}

/** What is wrong with arguments, in one line. */
export function describeIssues(error: z.ZodError): string {
  return error.issues.map((issue) => `${issue.path.join('.') || 'arguments'}: ${issue.message}`).join('; ');
}
