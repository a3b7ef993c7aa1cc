import { CANONICAL_FIELDS, EVENT_NAMES, type EventName } from '../../protocol/event-line.ts';
import { VERSIONS } from '../../protocol/versions.ts';
import { code, page, table } from './markdown.ts';

/** When each event is written. */
const WHEN = {
  'proc.start': 'The process started.',
  'proc.ready': 'It serves or works; `url` where it listens.',
  'proc.shutdown': 'It was told to end, or decided to.',
  'proc.exit': 'The last line, with the exit code.',
  'config.loaded': 'The configuration is complete and valid.',
  'config.warn': 'Something is configured that will not have its effect, or cannot be done just now.',
  'config.invalid': 'The configuration is not acceptable; one line, exit 2.',
  'config.reloaded': 'A new configuration is in force.',
  'mcp.connect': 'A connection to or from an MCP peer is live.',
  'mcp.connect.fail': 'An attempt to connect failed; it is tried again.',
  'mcp.disconnect': 'A connection ended.',
  'trigger.armed': 'A clock was set.',
  'trigger.fired': 'A clock was due.',
  subscribe: 'A resource is subscribed to.',
  unsubscribe: 'A subscription ended.',
  'resource.updated': 'A watched resource changed, or may have.',
  'event.unrouted': 'No route takes the event; it was dropped.',
  'shard.skipped': 'The event belongs to another shard.',
  'claim.offered': 'The item is put to the coordination server; with `err` and at warn, it could not be.',
  'claim.granted': 'The lease is ours.',
  'claim.lost': 'Somebody else holds it, or it is already done.',
  'claim.renewed': 'The lease was extended.',
  'claim.renew.fail': 'An attempt to extend it failed.',
  'claim.acked': 'The item is settled.',
  'claim.released': 'The item may be claimed again at once.',
  'claim.expired': 'The lease ran out or was taken away while the work ran; the work is stopped.',
  'drain.start': 'Nothing new starts from here on.',
  'drain.step': 'A step of the drain is done.',
  'drain.claim_release_failed': 'A lease could not be released within the drain; it will expire.',
  'drain.done': 'The drain is over.',
  'subagent.spawn': 'A child was given a run.',
  'subagent.exit': 'A run ended; `status` says how.',
  'subagent.signal': 'A child was signalled.',
  'subagent.stuck': 'A child neither progresses nor answers.',
  'subagent.restart': 'A child is started again.',
  'subagent.orphan': 'A process that outlived its parent was found and ended.',
  'limit.exceeded': 'A limit refused or ended something; `limit` names it.',
  'loop.start': 'An agent began its loop.',
  'loop.step': 'One step of the loop.',
  'loop.final': 'The agent gave its answer.',
  'loop.error': 'Something in a run went wrong.',
  'intel.call': 'A model is called.',
  'intel.result': 'The model answered, or failed to.',
  'tool.call': 'A tool is called.',
  'tool.result': 'The tool answered, or failed to.',
  'report.written': 'The run report is in its file.',
  'report.write.fail': 'The run report could not be written; nothing else changes.',
} as const satisfies Record<EventName, string>;

/** docs/events.md, from the vocabulary. */
export function eventsPage(): string {
  return page(
    '# Events',
    'stdout carries the result of the agent and nothing else. stderr carries telemetry: one JSON object a ' +
      `line, events_schema ${VERSIONS.events_schema}, or text for people with \`--log-format text\`.`,
    `Every line begins with ${[...CANONICAL_FIELDS]
      .filter((field) => field !== 'seq')
      .map(code)
      .join(' ')}, in this order; no other field can take their place. Then, where known: ` +
      '`trace_id`, `span_id`, `parent_span_id`, `dur_ms`, `err` (type and message) and `msg`, and after them ' +
      'what the event itself has to say. Names in `_ms` are milliseconds, to a tenth at most.',
    'Prompts, arguments and results appear as hash and length unless `--log-content` is given. Credentials ' +
      'never appear. Long values are cut and say by how much. A reader of stderr that falls behind loses ' +
      'lines, which `agent_log_lines_dropped_total` counts; it never slows the service down.',
    '## Vocabulary',
    table(
      ['event', 'when'],
      EVENT_NAMES.map((name) => [code(name), WHEN[name]]),
    ),
    '## The stream',
    '`agent://events` on the management surface serves the latest lines (`--events-ring`, 1024 by default) ' +
      'with a number `seq` each: `{events_schema, oldest_seq, newest_seq, dropped, events[]}`. Read on with ' +
      '`?after=<seq>`, and filter with `&level=<least>` and `&event=<prefix,prefix>`. `dropped` counts the ' +
      'lines after the cursor that were overwritten before they could be read. With `more: true` the page ' +
      'ended early: read on after its last line, otherwise after `newest_seq`. A `newest_seq` below the ' +
      'cursor means that the instance was started again.',
    '`agentd events --follow --url URL` does all of that for one or several instances.',
  );
}
