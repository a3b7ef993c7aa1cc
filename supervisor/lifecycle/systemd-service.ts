import type { Clock } from '../reactor/clock.ts';
import type { Health } from '../surface/health.ts';
import type { Log } from '../telemetry/log.ts';
import type { Readiness, UnreadyReason } from './readiness.ts';
import {
  NOTIFY_START,
  type NotifyEffect,
  type NotifyEvent,
  type ServiceFacts,
  stepNotify,
} from './systemd-machine.ts';
import { openServiceManager, type ServiceManager } from './systemd-notify.ts';

/** The figures of a status line. */
export interface ServiceFigures {
  readonly running: number;
  readonly backlog: number;
  /** What is left of the drain budget, ms; null before a drain. */
  readonly drainLeftMs: number | null;
}

/** A supervisor as a service of systemd: what it tells its manager. */
export interface Service {
  /** `health` with ears for the manager: it hears every beat of the reactor and every readiness. */
  over(health: Health): Health;
  /** Where the figures come from; asked for at most once a second, and at each change of readiness. */
  observe(figures: () => ServiceFigures): void;
  /** A reload of the configuration begins; `reloaded` must follow, whatever came of it. */
  reloading(): void;
  reloaded(): void;
  close(): void;
}

/** Between two looks at the figures, ms. */
const LOOK_MS = 1_000;

const NO_SERVICE: Service = {
  over: (health) => health,
  observe: () => undefined,
  reloading: () => undefined,
  reloaded: () => undefined,
  close: () => undefined,
};

/** Without NOTIFY_SOCKET nothing is loaded and every call does nothing. */
export async function openService(env: NodeJS.ProcessEnv, clock: Clock, log: Log): Promise<Service> {
  if ((env.NOTIFY_SOCKET ?? '') === '') return NO_SERVICE;
  return serviceOver(await openServiceManager(env, log), clock);
}

/** For a manager that is already there. */
export function serviceOver(manager: ServiceManager, clock: Clock): Service {
  let state = NOTIFY_START;
  let readiness: Readiness | null = null;
  let figures: () => ServiceFigures = () => ({ running: 0, backlog: 0, drainLeftMs: null });
  let nextLook = Number.NEGATIVE_INFINITY;

  const facts = (): ServiceFacts => ({ ...figures(), ...factsOf(readiness) });
  const step = (event: NotifyEvent): void => {
    const decision = stepNotify(state, event, clock.now(), manager.watchdogMs);
    state = decision.state;
    for (const effect of decision.effects) apply(manager, effect);
  };
  const look = (): void => {
    nextLook = clock.now() + Math.min(LOOK_MS, (manager.watchdogMs ?? LOOK_MS) / 4);
    step({ type: 'look', facts: facts() });
  };
  return {
    over: (health) => ({
      ...health,
      beat: () => {
        health.beat();
        if (clock.now() >= nextLook) look();
      },
      setReadiness: (next) => {
        health.setReadiness(next);
        readiness = next;
        look();
      },
    }),
    observe: (source) => {
      figures = source;
    },
    reloading: () => step({ type: 'reload.begin' }),
    reloaded: () => step({ type: 'reload.end', facts: facts() }),
    close: () => manager.close(),
  };
}

function apply(manager: ServiceManager, effect: NotifyEffect): void {
  switch (effect.type) {
    case 'ready':
    case 'status':
    case 'stopping':
      manager[effect.type](effect.status);
      return;
    case 'reloading':
    case 'watchdog':
      manager[effect.type]();
      return;
    case 'extend':
      manager.extendTimeout(effect.ms);
  }
}

function factsOf(readiness: Readiness | null): Pick<ServiceFacts, 'phase' | 'unready' | 'paused'> {
  if (readiness === null || readiness.reasons.includes('starting')) {
    return { phase: 'starting', unready: [], paused: false };
  }
  const { paused, reasons } = readiness;
  if (reasons.includes('draining')) return { phase: 'draining', unready: [], paused };
  return { phase: 'running', unready: reasons.map((reason) => inWords(reason, readiness)), paused };
}

function inWords(reason: UnreadyReason, { deaf_servers: deaf }: Readiness): string {
  switch (reason) {
    case 'starting':
    case 'draining':
      return reason;
    case 'lame_duck':
      return 'lame duck';
    case 'intelligence_down':
      return 'no model endpoint answers';
    case 'cannot_spawn':
      return 'no child can be started';
    case 'deaf_subscription':
      return `deaf to ${deaf.join(' and ')}`;
  }
}

/**
 * Leaves the reason of a failed start where `systemctl status` shows it, after the process has ended.
 *
 * @param message what could not be done
 */
export async function announceFailure(env: NodeJS.ProcessEnv, message: string): Promise<void> {
  if ((env.NOTIFY_SOCKET ?? '') === '') return;
  const manager = await openServiceManager(env, null);
  manager.status(`ended: ${message}`);
  manager.close();
}

/**
 * A serving verb (`coordinate`, `inbox`) as a service: ready now, fed by the event loop that also serves.
 *
 * @param status a line for `systemctl status`
 * @returns what to call when it begins to stop; it tells nothing more afterwards
 */
export async function announceServing(env: NodeJS.ProcessEnv, log: Log, status: string): Promise<() => void> {
  if ((env.NOTIFY_SOCKET ?? '') === '') return () => undefined;
  const manager = await openServiceManager(env, log);
  manager.ready(status);
  const { watchdogMs } = manager;
  const feeding = watchdogMs === null ? undefined : setInterval(() => manager.watchdog(), watchdogMs / 4);
  feeding?.unref();
  return () => {
    clearInterval(feeding);
    manager.stopping('stopping');
    manager.close();
  };
}
