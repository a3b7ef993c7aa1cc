import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { type RunReport, runReport } from '../../protocol/run-report.ts';

/** Larger files are no run reports, bytes. */
const MAX_REPORT_BYTES = 1024 * 1024;

/** Minor versions only grow: what is unknown is ignored. A new major version is refused by name. */
const readable = runReport.extend({ report_schema: z.string() });

export type ReadReport = Omit<RunReport, 'report_schema'> & { readonly report_schema: string };

export type ReportFile =
  | { readonly path: string; readonly stamp: string; readonly report: ReadReport }
  | { readonly path: string; readonly stamp: string; readonly problem: string };

/** The files a path stands for: itself, or every `*.json` directly in the folder it names. */
export function reportPaths(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path)
    .filter((name) => name.endsWith('.json') && !name.startsWith('.'))
    .sort()
    .map((name) => join(path, name));
}

/** Reads one report. A file that is none is described, not thrown. */
export function readReport(path: string): ReportFile {
  let stamp = '';
  try {
    const { size, mtimeMs, ino } = statSync(path);
    stamp = `${ino}:${mtimeMs}:${size}`;
    if (size > MAX_REPORT_BYTES) return { path, stamp, problem: `larger than ${MAX_REPORT_BYTES} bytes` };
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    const found = versionOf(value);
    if (found === null) return { path, stamp, problem: 'not a run report' };
    if (!/^1\.\d+$/.test(found))
      return { path, stamp, problem: `report_schema "${found}" is not known here` };
    const parsed = readable.safeParse(value);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      return { path, stamp, problem: `not a run report: ${issue?.path.join('.')}: ${issue?.message}` };
    }
    return { path, stamp, report: parsed.data };
  } catch (error) {
    const reason =
      error instanceof SyntaxError ? 'not JSON' : error instanceof Error ? error.message : String(error);
    return { path, stamp, problem: reason };
  }
}

function versionOf(value: unknown): string | null {
  if (typeof value !== 'object' || value === null || !('report_schema' in value)) return null;
  return typeof value.report_schema === 'string' ? value.report_schema : null;
}
