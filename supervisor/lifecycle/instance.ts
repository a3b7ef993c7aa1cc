import { randomBytes } from 'node:crypto';

/**
 * The name this process goes by on the wire: the instance name and a mark of this very process.
 *
 * A ledger hands a repeated claim by the same instance its own lease back, so that a lost reply can
 * be asked for again. Two processes that share a name (replicas on one host, or the successor of one
 * that was killed) must therefore never look like one instance.
 */
export function processInstance(name: string): string {
  return `${name}#${randomBytes(4).toString('hex')}`;
}
