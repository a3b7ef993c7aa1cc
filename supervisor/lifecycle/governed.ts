import {
  GOVERNOR_START,
  type Governor as GovernorState,
  governorStep,
} from '../children/restart-governor.ts';
import type { RestartVerdict } from '../routing/session-machine.ts';
import type { Governor } from '../routing/sessions.ts';

/** The restart governor of one thing: keeps its state, and says when it may be started again. */
export class Governed implements Governor {
  private state: GovernorState = GOVERNOR_START;

  /** @param random in [0, 1): jitter */
  constructor(private readonly random: () => number) {}

  failed(now: number, beforeReady: boolean): RestartVerdict {
    this.state = governorStep(this.state, { type: 'failed', now, beforeReady, random: this.random() }).state;
    switch (this.state.name) {
      case 'open':
        return { kind: 'open', until: this.state.until };
      case 'backing_off':
        return { kind: 'retry', at: this.state.until };
      case 'closed':
      case 'probing':
        return { kind: 'retry', at: now };
    }
  }

  succeeded(now: number): void {
    this.state = governorStep(this.state, { type: 'succeeded', now }).state;
  }
}
