import type { SupervisorNotification } from '../../protocol/frames.ts';

type Wake = Extract<SupervisorNotification, { method: 'session.wake' }>;

/** Wakes that may wait for one session; beyond them the last one takes up what comes. */
const MAX_WAITING = 64;

/** The wakes of one session: in order, one turn at a time, one set of changed URIs a wake. */
export class SessionWakes {
  private sequence = 0;
  private turning = false;
  private readonly waiting: { uris: readonly string[]; messages: readonly string[] }[] = [];

  constructor(
    private readonly runId: string,
    private readonly send: (wake: Wake) => void,
  ) {}

  /** Whether a turn is being made. */
  get inTurn(): boolean {
    return this.turning;
  }

  add(uris: readonly string[], messages: readonly string[]): void {
    const last = this.waiting.at(-1);
    if (last !== undefined && this.waiting.length >= MAX_WAITING) {
      this.waiting[this.waiting.length - 1] = {
        uris: [...new Set([...last.uris, ...uris])],
        messages: [...last.messages, ...messages].slice(-MAX_WAITING),
      };
    } else this.waiting.push({ uris: [...new Set(uris)], messages });
    this.pump();
  }

  /** The child answered a wake. False when it was not the one it was asked. */
  turned(sequence: number): boolean {
    if (!this.turning || sequence !== this.sequence) return false;
    this.turning = false;
    return true;
  }

  /** Sends the next wake, if the session rests. */
  pump(): void {
    if (this.turning) return;
    const next = this.waiting.shift();
    if (next === undefined) return;
    this.turning = true;
    this.sequence += 1;
    this.send({
      method: 'session.wake',
      params: {
        run_id: this.runId,
        sequence: this.sequence,
        uris: [...next.uris],
        messages: [...next.messages],
      },
    });
  }
}
