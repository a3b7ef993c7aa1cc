import { AgentdError } from '../../protocol/errors.ts';
import { operatorParams } from '../../protocol/management.ts';

/**
 * A handle somebody typed.
 *
 * @throws AgentdError USAGE
 */
export function checkedHandle(text: string): string {
  const { success } = operatorParams['a2a.Cancel'].safeParse({ handle: text });
  if (success) return text;
  throw new AgentdError('USAGE', `${JSON.stringify(text)} is no handle of an agent`, {
    remedy: 'A handle looks like 0 or 0.2; `agentd ps` lists those that run.',
  });
}
