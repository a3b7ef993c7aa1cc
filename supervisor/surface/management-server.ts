import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CallToolRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { AGENT_VERSION } from '../../protocol/versions.ts';
import type { Log } from '../telemetry/log.ts';
import { RPC } from './http-reply.ts';
import type { ManagementPort } from './management-port.ts';
import {
  managementResourceList,
  managementTemplates,
  readManagementResource,
  subscribableUri,
} from './management-resources.ts';
import { callManagementTool, managementToolList } from './management-tools.ts';
import type { SessionContext } from './mcp-endpoint.ts';
import { registerOperatorMethods } from './operator-methods.ts';
import { SubscriptionLimit } from './resource-hub.ts';
import { RpcError } from './rpc-error.ts';

/** The MCP server of one management session. Whoever is not Management gets one without anything in it. */
export function managementServer(port: ManagementPort, session: SessionContext, log: Log): Server {
  const identity = { name: 'agentd', version: AGENT_VERSION };
  if (!session.management) return new Server(identity, { capabilities: {} });
  const server = new Server(identity, { capabilities: { tools: {}, resources: { subscribe: true } } });
  const tools = managementToolList();
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    log.debug('tool.call', { tool: params.name });
    return callManagementTool(port, params);
  });
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: managementResourceList(port) }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: managementTemplates(),
  }));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params }) =>
    readManagementResource(port, params.uri),
  );
  server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    const uri = subscribableUri(port, params.uri);
    try {
      session.subscribe(uri);
    } catch (error) {
      if (error instanceof SubscriptionLimit) throw new RpcError(RPC.INVALID_PARAMS, error.message);
      throw error;
    }
    return {};
  });
  server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    session.unsubscribe(params.uri);
    return {};
  });
  registerOperatorMethods(server, port, log);
  return server;
}
