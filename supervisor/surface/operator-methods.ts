import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { z } from 'zod';
import { AgentdError } from '../../protocol/errors.ts';
import { operatorParams } from '../../protocol/management.ts';
import type { Log } from '../telemetry/log.ts';
import { RPC } from './http-reply.ts';
import type { ManagementPort } from './management-port.ts';
import { describeIssues, unknownSubagent } from './management-tools.ts';
import { RpcError } from './rpc-error.ts';

type Result = Readonly<Record<string, unknown>>;

/**
 * Registers the operator methods (contract, section 10). They are registered for Management only,
 * so that to anybody else they do not exist (-32601).
 */
export function registerOperatorMethods(server: Server, port: ManagementPort, log: Log): void {
  const serve = <P extends z.ZodObject>(
    method: string,
    params: P,
    act: (params: z.infer<P>) => Promise<Result>,
  ): void => {
    const request = z.object({ method: z.literal(method), params: z.looseObject({}).optional() });
    server.setRequestHandler(request, async (received) => {
      const parsed = params.safeParse(received.params ?? {});
      if (!parsed.success) {
        throw new RpcError(RPC.INVALID_PARAMS, `${method}: ${describeIssues(parsed.error)}`);
      }
      log.info('tool.call', { tool: method });
      return answering(() => act(parsed.data));
    });
  };
  serve('a2a.Drain', operatorParams['a2a.Drain'], ({ deadline_ms }) => port.drain(deadline_ms ?? null));
  serve('a2a.LameDuck', operatorParams['a2a.LameDuck'], ({ ready }) => port.lameDuck(ready !== true));
  serve('a2a.Pause', operatorParams['a2a.Pause'], () => port.pause());
  serve('a2a.Resume', operatorParams['a2a.Resume'], () => port.resume());
  serve('a2a.Cancel', operatorParams['a2a.Cancel'], async ({ handle, reason }) => {
    if (!(await port.cancel(handle, reason ?? null))) throw unknownSubagent(handle);
    return { cancelled: true, handle };
  });
}

async function answering(act: () => Promise<Result>): Promise<Record<string, unknown>> {
  try {
    return { ...(await act()) };
  } catch (error) {
    if (!(error instanceof AgentdError)) throw error;
    const code = error.code === 'SUBAGENT_UNKNOWN' ? RPC.INVALID_PARAMS : RPC.TRANSPORT;
    throw new RpcError(code, error.message, { code: error.code, kind: error.kind, remedy: error.remedy });
  }
}
