import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import type { Playbook, PlaybookCase, PlaybookTurn, ScriptedCall } from '../../protocol/playbook.ts';
import { renderTemplate, renderValue, type TemplateName } from '../../protocol/playbook-template.ts';
import { TASK_REFUSE } from '../tools/self-tools.ts';
import {
  argumentsOf,
  type CompleteOptions,
  type FailureReason,
  type Model,
  type ModelAnswer,
  type ModelRequest,
  parseArguments,
  type StopReason,
  type TaskContext,
  type ToolCall,
} from './model.ts';
import type { ScriptedEffects } from './scripted-effects.ts';

export interface ScriptedOptions {
  /** What follows `script:`. */
  readonly script: string;
  readonly runId: string;
  readonly agentPath: string;
  readonly instruction: string;
  readonly effects: ScriptedEffects;
  readonly now: () => number;
}

const MODEL_NAME = 'scripted';
const DEFAULT_FINAL = 'done';

/**
 * A model that plays a playbook.
 *
 * @throws AgentdError PLAYBOOK_INVALID
 */
export async function openScriptedModel(options: ScriptedOptions): Promise<Model> {
  const { script } = options;
  const playbook =
    script === 'final' || script.startsWith('final:')
      ? finalPlaybook(script.slice('final:'.length) || DEFAULT_FINAL)
      : await readPlaybook(script);
  return new ScriptedModel(playbook, await caseMatchers(playbook), options);
}

/** The playbook of `script:final` and `script:final:TEXT`. */
function finalPlaybook(text: string): Playbook {
  const turn: PlaybookTurn = { action: { kind: 'final', value: text }, tokens: null, repeat: 1 };
  return { cases: [{ uri: null, server: null, turns: [turn] }] };
}

async function readPlaybook(path: string): Promise<Playbook> {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new AgentdError('PLAYBOOK_INVALID', `cannot read the playbook ${path}: ${errorMessage(error)}`, {
      cause: error,
    });
  }
  const { parsePlaybook } = await import('../../protocol/playbook.ts');
  return parsePlaybook(text, path);
}

type Matches = (task: TaskContext) => boolean;

async function caseMatchers(playbook: Playbook): Promise<readonly Matches[]> {
  if (playbook.cases.every((entry) => entry.uri === null && entry.server === null)) {
    return playbook.cases.map(() => () => true);
  }
  const { default: picomatch } = await import('picomatch');
  const compile = (glob: string | null): ((text: string) => boolean) => {
    if (glob === null) return () => true;
    // In a URI these are ordinary characters, as they are in a route's match.
    return picomatch(glob.replace(/[?()!+@|]/g, '\\$&'), { dot: true, nonegate: true });
  };
  return playbook.cases.map((entry) => {
    const uri = compile(entry.uri);
    const server = compile(entry.server);
    return (task) => uri(task.uri) && server(task.server);
  });
}

/** What a turn came to: an answer, or something that only happens before the next one. */
type Played = Omit<ModelAnswer, 'model' | 'usage'> | null;

class ScriptedModel implements Model {
  private sequence = 0;
  private turnIndex = 0;
  private playedOfTurn = 0;

  constructor(
    private readonly playbook: Playbook,
    private readonly matchers: readonly Matches[],
    private readonly options: ScriptedOptions,
  ) {}

  async complete(request: ModelRequest, { onCall, signal }: CompleteOptions): Promise<ModelAnswer> {
    const started = this.options.now();
    for (;;) {
      signal.throwIfAborted();
      const turn = this.nextTurn(request.task);
      const report = (failure: { reason: FailureReason; message: string } | null): void => {
        const usage = turn.tokens === null ? null : { tokensIn: turn.tokens.in, tokensOut: turn.tokens.out };
        const durationMs = this.options.now() - started;
        onCall({ endpoint: 0, durationMs, usage, model: MODEL_NAME, failure });
      };
      if (turn.action.kind === 'fail') {
        const reason = turn.action.value;
        report({ reason: reason === 'rejected' ? 'other' : reason, message: `the playbook says ${reason}` });
        throw new AgentdError(
          failureCode(reason),
          `no model endpoint can be used: the playbook says ${reason}`,
        );
      }
      const played = await this.play(turn, request, signal);
      if (played === null) continue;
      report(null);
      const { tokens } = turn;
      const usage = tokens === null ? null : { tokensIn: tokens.in, tokensOut: tokens.out };
      return { ...played, model: MODEL_NAME, usage };
    }
  }

  /** Each task, a run or one wake of a session, begins its case from the start. */
  private nextTurn(task: TaskContext): PlaybookTurn {
    if (task.sequence !== this.sequence) {
      this.sequence = task.sequence;
      this.turnIndex = 0;
      this.playedOfTurn = 0;
    }
    const chosen = this.chooseCase(task);
    let turn = chosen.turns[this.turnIndex];
    if (turn !== undefined && this.playedOfTurn >= turn.repeat) {
      this.turnIndex++;
      this.playedOfTurn = 0;
      turn = chosen.turns[this.turnIndex];
    }
    if (turn === undefined) {
      throw new AgentdError(
        'PLAYBOOK_ENDED',
        `playbook ${this.options.script} has no turn after number ${chosen.turns.length}, and the run goes on`,
      );
    }
    this.playedOfTurn++;
    return turn;
  }

  private chooseCase(task: TaskContext): PlaybookCase {
    const index = this.matchers.findIndex((matches) => matches(task));
    const chosen = this.playbook.cases[index];
    if (chosen === undefined) {
      throw new AgentdError(
        'PLAYBOOK_ENDED',
        `playbook ${this.options.script} has no case for ${task.uri === '' ? 'a run without event' : task.uri}`,
        { remedy: 'Add a case without `when` at the end of the playbook.' },
      );
    }
    return chosen;
  }

  private async play(turn: PlaybookTurn, request: ModelRequest, signal: AbortSignal): Promise<Played> {
    const { effects } = this.options;
    const { action } = turn;
    const lookup = (name: TemplateName): string => this.valueOf(name, request);
    switch (action.kind) {
      case 'final':
        return say(renderTemplate(action.value, lookup), 'end');
      case 'text':
        return say(renderTemplate(action.value, lookup), 'cut_off');
      case 'tool':
      case 'loop':
        return call([action.value], lookup);
      case 'calls':
        return call(action.value, lookup);
      case 'refuse':
        return call([{ name: TASK_REFUSE, arguments: { reason: action.value } }], lookup);
      case 'malformed':
        return malformed(action.value, request);
      case 'fail':
        return null;
      case 'sleep':
        await delay(action.value, undefined, { signal });
        return null;
      case 'hang':
        await new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        });
        return null;
      case 'spin':
        effects.spin(action.value === true ? null : action.value);
        return null;
      case 'crash':
        await effects.crash(action.value);
        return null;
      case 'flood_stdout':
        await effects.floodStdout(action.value.bytes, action.value.line ?? 0);
        return null;
      case 'flood_stderr':
        await effects.floodStderr(action.value.bytes, action.value.line ?? 100);
        return null;
      case 'flood_log':
        await effects.floodLog(action.value);
        return null;
      case 'fork':
        await effects.fork(action.value.kinds, action.value.seconds);
        return null;
      case 'garbage':
        await effects.writeRaw(
          typeof action.value === 'string'
            ? Buffer.from(`${renderTemplate(action.value, lookup)}\n`)
            : Buffer.from(action.value.hex.replace(/\s/g, ''), 'hex'),
        );
        return null;
    }
  }

  private valueOf(name: TemplateName, request: ModelRequest): string {
    switch (name) {
      case 'event.uri':
        return request.task.uri;
      case 'event.server':
        return request.task.server;
      case 'run_id':
        return this.options.runId;
      case 'agent_path':
        return this.options.agentPath;
      case 'instruction':
        return this.options.instruction;
      case 'last.text':
        return request.messages.findLast((message) => message.role === 'tool')?.text ?? '';
    }
  }
}

function say(text: string, stop: StopReason): Played {
  return { text, calls: [], stop: text.trim() === '' ? 'cut_off' : stop };
}

function call(calls: readonly ScriptedCall[], lookup: (name: TemplateName) => string): Played {
  return {
    text: '',
    stop: 'calls',
    calls: calls.map(
      (entry): ToolCall => ({
        id: '',
        name: entry.name,
        arguments: argumentsOf(renderValue(entry.arguments, lookup)),
      }),
    ),
  };
}

function malformed(how: 'bad_json' | 'unknown_tool' | 'empty', request: ModelRequest): Played {
  if (how === 'empty') return { text: '', calls: [], stop: 'cut_off' };
  const name = how === 'unknown_tool' ? 'no_such_tool' : (request.tools[0]?.name ?? TASK_REFUSE);
  const written = parseArguments(how === 'bad_json' ? '{"broken": ' : '{}');
  return { text: '', calls: [{ id: '', name, arguments: written }], stop: 'calls' };
}

function failureCode(
  reason: FailureReason | 'rejected',
): 'INTELLIGENCE_AUTH' | 'INTELLIGENCE_REJECTED' | 'INTELLIGENCE_UNREACHABLE' {
  if (reason === 'auth') return 'INTELLIGENCE_AUTH';
  return reason === 'rejected' ? 'INTELLIGENCE_REJECTED' : 'INTELLIGENCE_UNREACHABLE';
}
