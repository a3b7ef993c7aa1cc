import { identify, isSameProcess, type ProcessIdentity, pidNamespace } from './proc.ts';

/**
 * The marker every child carries in its environment, and passes on to its own children. It says
 * who answers for the process, so that what outlived a dead supervisor can be found at the next
 * start, also after it left its group and session (setsid).
 */
export const SUPERVISION_VARIABLE = 'AGENT_SUPERVISION_ID';

export interface SupervisionId {
  /** Inode of the pid namespace the supervisor's pid is valid in. */
  readonly namespace: string;
  readonly supervisor: ProcessIdentity;
  readonly instance: string;
}

let own: { readonly namespace: string; readonly supervisor: ProcessIdentity } | null = null;

/** The marker of processes this very process supervises. */
export function supervisionId(instance: string): string {
  own ??= { namespace: pidNamespace(), supervisor: identify(process.pid) };
  const { namespace, supervisor } = own;
  return `${namespace}.${supervisor.pid}.${supervisor.startTime ?? '0'}.${instance}`;
}

/** Reads a marker; null when it is none of ours. */
export function parseSupervisionId(text: string): SupervisionId | null {
  const match = /^(\d+)\.(\d+)\.(\d+)\.([\s\S]*)$/.exec(text);
  if (match === null) return null;
  const [, namespace = '0', pid = '0', startTime = '0', instance = ''] = match;
  return {
    namespace,
    supervisor: { pid: Number(pid), startTime: startTime === '0' ? null : startTime },
    instance,
  };
}

/**
 * Whether the supervisor named by a marker is certainly dead. A pid of another namespace says
 * nothing here, so such a supervisor is never judged dead.
 */
export function supervisorIsGone(id: SupervisionId): boolean {
  if (id.namespace !== pidNamespace() || id.namespace === '0' || id.supervisor.startTime === null)
    return false;
  return !isSameProcess(id.supervisor);
}
