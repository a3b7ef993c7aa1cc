/** A duration as people read it: `840 ms`, `12.3 s`, `4m05s`, `2h07m`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  const two = (value: number): string => String(value).padStart(2, '0');
  return minutes < 60
    ? `${minutes}m${two(Math.floor(ms / 1_000) % 60)}s`
    : `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`;
}
