import type { Message, ToolCall } from '../model/model.ts';
import { cutMiddle, wellFormed } from './distill.ts';

export interface TranscriptLimits {
  /** Longest single text, characters. */
  readonly text: number;
  /** Longest whole conversation, characters. */
  readonly total: number;
}

/** Some hundred thousand tokens in all; one document of ten thousand words at a time. */
export const TRANSCRIPT_LIMITS: TranscriptLimits = { text: 64 * 1024, total: 512 * 1024 };

/** What an elided tool result is replaced with. */
const ELIDED = '[elided: this result was removed to save space; call the tool again if it is needed]';
/** Tool results this short are not worth eliding. */
const WORTH_ELIDING = 4 * ELIDED.length;

/**
 * The conversation, bounded (invariant 8): a long text is cut as it comes in; when the whole grows
 * past its limit, old tool results are elided first, then the oldest turns are dropped. The first
 * message is the task and stays. A tool result never outlives the call it answers.
 */
export class Transcript {
  private list: Message[] = [];
  private size = 0;
  private callCount = 0;

  constructor(private readonly limits: TranscriptLimits = TRANSCRIPT_LIMITS) {}

  get messages(): readonly Message[] {
    return this.list;
  }

  /** Characters held. */
  get length(): number {
    return this.size;
  }

  user(text: string): void {
    this.push({ role: 'user', text: this.cut(text) });
  }

  /**
   * Takes an answer. Ids of calls are made unique: endpoints may leave them out or repeat them.
   *
   * @returns the calls as they stand in the transcript
   */
  assistant(text: string, calls: readonly ToolCall[]): readonly ToolCall[] {
    const kept = calls.map((call) => {
      this.callCount++;
      const taken = call.id === '' || this.list.some((message) => holdsCall(message, call.id));
      const unique = taken || calls.filter((other) => other.id === call.id).length > 1;
      return unique ? { ...call, id: `call_${this.callCount}` } : call;
    });
    // Some APIs refuse a message that says nothing at all.
    if (text.trim() !== '' || kept.length > 0) {
      this.push({ role: 'assistant', text: this.cut(text), calls: kept });
    }
    return kept;
  }

  /** @param siblings calls of the same turn: they share half of the whole limit */
  result(call: ToolCall, text: string, isError: boolean, siblings = 1): void {
    const room = Math.min(this.limits.text, Math.floor(this.limits.total / 2 / siblings));
    const cut = cutMiddle(wellFormed(text), room);
    this.push({ role: 'tool', callId: call.id, name: call.name, text: cut, isError });
  }

  private cut(text: string): string {
    return cutMiddle(wellFormed(text), this.limits.text);
  }

  private push(message: Message): void {
    this.list.push(message);
    this.size += sizeOf(message);
    if (this.size > this.limits.total) this.shrink();
  }

  private shrink(): void {
    // Below the limit by a quarter, so that not every message from now on shrinks again.
    const target = this.limits.total * 0.75;
    // The results of the turn at hand are what the model is about to read.
    const untouchable = this.list.findLastIndex((message) => message.role === 'assistant');
    for (let index = 1; index < untouchable && this.size > target; index++) {
      const message = this.list[index];
      if (message?.role !== 'tool' || message.text.length < WORTH_ELIDING) continue;
      this.size += ELIDED.length - message.text.length;
      this.list[index] = { ...message, text: ELIDED };
    }
    while (this.size > this.limits.total && this.list.length > 2) {
      const end = this.endOfSecondTurn();
      if (end >= this.list.length) break;
      for (const message of this.list.splice(1, end - 1)) this.size -= sizeOf(message);
    }
  }

  /** Index after the turn that begins at 1: a message with the tool results that belong to it. */
  private endOfSecondTurn(): number {
    let end = 2;
    while (this.list[end]?.role === 'tool') end++;
    return end;
  }
}

function holdsCall(message: Message, id: string): boolean {
  return message.role === 'assistant' && message.calls.some((call) => call.id === id);
}

function sizeOf(message: Message): number {
  if (message.role !== 'assistant') return message.text.length;
  return message.calls.reduce(
    (sum, call) => sum + call.name.length + JSON.stringify(call.arguments).length,
    message.text.length,
  );
}
