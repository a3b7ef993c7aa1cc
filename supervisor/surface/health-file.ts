import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { isSpecial, writeSpecial } from '../telemetry/replace-file.ts';

/**
 * The verdict of the probes as a file, for supervisors that look at files. Replaced in one step, so
 * that a reader never sees half a document.
 */
export class HealthFile {
  private failing = false;

  /** @param failed told once for each series of failures */
  constructor(
    private readonly path: string,
    private readonly failed: (message: string) => void,
  ) {}

  write(verdict: object): void {
    const temporary = `${this.path}.${process.pid}.tmp`;
    const text = `${JSON.stringify(verdict)}\n`;
    try {
      if (isSpecial(this.path)) {
        writeSpecial(this.path, text);
      } else {
        writeFileSync(temporary, text);
        renameSync(temporary, this.path);
      }
      this.failing = false;
    } catch (error) {
      rmSync(temporary, { force: true });
      if (!this.failing) this.failed(error instanceof Error ? error.message : String(error));
      this.failing = true;
    }
  }
}
