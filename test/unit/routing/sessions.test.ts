import { describe, expect, it } from 'vitest';
import type { RouteConfig } from '../../../supervisor/config/config.ts';
import { Intake } from '../../../supervisor/routing/intake.ts';
import { SessionClaims } from '../../../supervisor/routing/session-claims.ts';
import { Sessions } from '../../../supervisor/routing/sessions.ts';
import { ManualClock } from '../../helpers/manual-clock.ts';
import { nullLog } from '../../helpers/null-log.ts';
import { recordingMetrics } from '../../helpers/peer-harness.ts';
import { CLAIM } from '../../helpers/reaction-bench.ts';
import { routeConfig } from '../../helpers/route-config.ts';
import { runOutcome } from '../../helpers/run-outcome.ts';

const sessionRoute = (over: Partial<RouteConfig> = {}): RouteConfig =>
  routeConfig({ match: 'a:///*', disposition: { kind: 'continue', session: 'talk' }, ...over });

function bench() {
  const clock = new ManualClock();
  const { metrics, values } = recordingMetrics();
  const intake = new Intake(
    { routes: [sessionRoute()], shard: { index: 0, count: 1, timer: 'shard0' } },
    nullLog,
    metrics,
    () => 16,
  );
  const trace: string[] = [];
  const machine = { canStart: true };
  const offered: string[] = [];
  let ids = 0;
  const sessions = new Sessions(intake, {
    clock,
    children: {
      launch: ({ runId, instruction }) => trace.push(`launch ${runId} ${instruction}`),
      wake: (runId, uris) => trace.push(`wake ${runId} ${uris.join(',')}`),
      stop: (runId, cause) => trace.push(`stop ${runId} ${cause}`),
      get canStart() {
        return machine.canStart;
      },
    },
    log: nullLog,
    metrics,
    newRunId: () => `run-${++ids}`,
    newGovernor: () => ({ failed: () => ({ kind: 'retry', at: 1_000 }), succeeded: () => undefined }),
    spec: (lane, _session, runId) => ({
      runId,
      kind: 'session',
      instruction: lane.route.config.instruction ?? 'none',
      event: null,
      tools: [],
      limits: { max_steps: 1, max_tokens: 1, deadline_ms: 1, tool_timeout_ms: 1 },
      outputContract: null,
      traceparent: '',
      route: null,
    }),
    mayStart: () => true,
    claims: new SessionClaims({ offer: (id) => offered.push(id), notCompleted: () => undefined }, () => ''),
    revisit: (server, uri, at) => trace.push(`revisit ${server} ${uri} at ${at}`),
    random: () => 0.5,
  });
  const hear = (uri: string): void => {
    intake.hear({ server: 's', uri, cause: 'notification', at: clock.now() }, clock.now());
    sessions.pump();
  };
  const reroute = (...routes: RouteConfig[]): void => {
    intake.reroute(routes, clock.now());
    sessions.outdate((route) => !intake.lanes.some((lane) => lane.route.config === route));
  };
  return { sessions, hear, reroute, trace, values, machine, offered, clock, waiting: () => intake.waiting };
}

describe('a session whose route is configured anew', () => {
  it('lets its idle child go at once, as no failure, and goes on with a new one', () => {
    const b = bench();
    b.hear('a:///1');
    b.sessions.onTurn('run-1');
    b.reroute(sessionRoute({ instruction: 'new' }));
    expect(b.trace.splice(0)).toEqual(['launch run-1 none', 'wake run-1 a:///1', 'stop run-1 cancelled']);
    expect(b.sessions.owns('run-1')).toBe(false);
    b.hear('a:///2');
    expect(b.trace).toEqual(['launch run-2 new', 'wake run-2 a:///2']);
    expect(b.values.get('agent_subagent_restarts_total{reason=crashed}')).toBeUndefined();
  });

  it('finishes the turn it is in first', () => {
    const b = bench();
    b.hear('a:///1');
    b.reroute(sessionRoute({ instruction: 'new' }));
    b.hear('a:///2');
    expect(b.trace).not.toContain('stop run-1 cancelled');
    b.sessions.onTurn('run-1');
    b.sessions.pump();
    expect(b.trace.slice(2)).toEqual(['stop run-1 cancelled', 'launch run-2 new', 'wake run-2 a:///2']);
  });

  it('is forgotten with its route, after its turn', () => {
    const b = bench();
    b.hear('a:///1');
    b.reroute();
    expect(b.sessions.list()).toHaveLength(1);
    b.sessions.onTurn('run-1');
    expect(b.trace.at(-1)).toBe('stop run-1 cancelled');
    expect(b.sessions.list()).toEqual([]);
  });

  it('begins its next child on the new route when the old one dies in its turn', () => {
    const b = bench();
    b.hear('a:///1');
    b.reroute(sessionRoute({ instruction: 'new' }));
    b.sessions.onSettled(runOutcome({ runId: 'run-1', status: 'crashed' }), false);
    expect(b.sessions.owns('run-1')).toBe(false);
    expect(b.sessions.list()).toMatchObject([{ state: 'closed' }]);
  });
});

describe('a session on a machine that can start no children', () => {
  it('is not opened and loses no update; one that has its child goes on', () => {
    const b = bench();
    b.machine.canStart = false;
    b.hear('a:///1');
    expect(b.trace).toEqual([]);
    expect(b.waiting()).toBe(1);
    b.machine.canStart = true;
    b.sessions.pump();
    b.sessions.onTurn('run-1');
    b.machine.canStart = false;
    b.hear('a:///2');
    expect(b.trace).toEqual(['launch run-1 none', 'wake run-1 a:///1', 'wake run-1 a:///2']);
  });

  it('is not held to have failed when its child did not come up', () => {
    const b = bench();
    b.hear('a:///1');
    b.machine.canStart = false;
    b.sessions.onSettled(runOutcome({ runId: 'run-1', status: 'crashed', cause: 'not_ready' }), false);
    expect(b.values.get('agent_subagent_restarts_total')).toBeUndefined();
    expect(b.waiting()).toBe(1);
    b.sessions.pump();
    b.machine.canStart = true;
    b.sessions.pump();
    expect(b.trace).toEqual([
      'launch run-1 none',
      'wake run-1 a:///1',
      'launch run-2 none',
      'wake run-2 a:///1',
    ]);
  });
});

describe('a session that another replica has', () => {
  it.each([
    ['when its lease would be over', 400, 425],
    ['no sooner than after a tenth of the ttl', 0, 125],
    ['no later than after about a ttl', 60_000, 1_025],
    ['after a ttl where nobody says when', undefined, 1_125],
  ])('is claimed again %s', (_name, retryAfterMs, at) => {
    const b = bench();
    b.reroute(sessionRoute({ claim: CLAIM }));
    b.hear('a:///1');
    const [id = ''] = b.offered;
    b.sessions.onLeaseEnded(id, { kind: 'lost', heldBy: 'another', retryAfterMs });
    expect(b.trace).toEqual([`revisit s a:///1 at ${b.clock.now() + at}`]);
  });
});
