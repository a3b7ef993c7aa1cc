import { type Family, parseExposition } from './exposition.ts';

/** What is served at a path of the metrics listener. */
export async function probe(
  base: string,
  path: string,
): Promise<{ status: number; body: string; type: string }> {
  const response = await fetch(new URL(path, base), { signal: AbortSignal.timeout(10_000) });
  return {
    status: response.status,
    body: await response.text(),
    type: response.headers.get('content-type') ?? '',
  };
}

export async function scrape(base: string): Promise<ReadonlyMap<string, Family>> {
  const { status, body } = await probe(base, '/metrics');
  if (status !== 200) throw new Error(`/metrics answered ${status}: ${body}`);
  return parseExposition(body);
}

/** Series of every family, histograms by their buckets. */
export function seriesCount(families: ReadonlyMap<string, Family>): number {
  return [...families.values()].reduce((sum, { samples }) => sum + samples.length, 0);
}
