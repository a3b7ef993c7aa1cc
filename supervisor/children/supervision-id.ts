import { identify, isSameProcess, type ProcessIdentity, pidNamespace, readStat } from './proc.ts';

/**
 * The marker every child carries in its environment, and passes on to its own children. It says
 * who answers for the process, so that what left its group and session (setsid) is found when its
 * child ends, and what outlived a dead supervisor is found at the next start.
 */
export const SUPERVISION_VARIABLE = 'AGENT_SUPERVISION_ID';

export interface SupervisionId {
  /** Inode of the pid namespace the supervisor's pid is valid in. */
  readonly namespace: string;
  readonly supervisor: ProcessIdentity;
  /** Which of the supervisor's processes it descends from. */
  readonly serial: number;
  readonly instance: string;
}

let own: { readonly namespace: string; readonly supervisor: ProcessIdentity } | null = null;

function self(): { readonly namespace: string; readonly supervisor: ProcessIdentity } {
  own ??= { namespace: pidNamespace(), supervisor: identify(process.pid) };
  return own;
}

/** The marker of one process this very process supervises. */
export function supervisionId(serial: number, instance: string): string {
  const { namespace, supervisor } = self();
  return `${namespace}.${supervisor.pid}.${supervisor.startTime ?? '0'}.${serial}.${instance}`;
}

/** Reads a marker; null when it is none of ours. */
export function parseSupervisionId(text: string): SupervisionId | null {
  const match = /^(\d+)\.(\d+)\.(\d+)\.(\d+)\.([\s\S]*)$/.exec(text);
  if (match === null) return null;
  const [, namespace = '0', pid = '0', startTime = '0', serial = '0', instance = ''] = match;
  return {
    namespace,
    supervisor: { pid: Number(pid), startTime: startTime === '0' ? null : startTime },
    serial: Number(serial),
    instance,
  };
}

/** Whether this very process is the one that answers for it. */
export function isOwn(id: SupervisionId): boolean {
  const { namespace, supervisor } = self();
  return (
    id.namespace === namespace &&
    id.supervisor.pid === supervisor.pid &&
    id.supervisor.startTime === supervisor.startTime
  );
}

/**
 * Whether the supervisor named by a marker is certainly dead. A pid of another namespace says
 * nothing here, so such a supervisor is never judged dead.
 */
export function supervisorIsGone(id: SupervisionId): boolean {
  const { namespace } = self();
  if (id.namespace !== namespace || namespace === '0' || id.supervisor.startTime === null) return false;
  // One that is dead and not yet waited for supervises nothing.
  return !isSameProcess(id.supervisor) || readStat(id.supervisor.pid)?.state === 'Z';
}
