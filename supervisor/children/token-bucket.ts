/** A token bucket: `burst` at once, `perSecond` thereafter. Immutable; time in ms is given in. */
export interface Bucket {
  readonly tokens: number;
  readonly at: number;
}

export interface BucketRate {
  readonly burst: number;
  readonly perSecond: number;
}

export function fullBucket(rate: BucketRate, now: number): Bucket {
  return { tokens: rate.burst, at: now };
}

/** Takes one token if there is one. */
export function takeToken(
  bucket: Bucket,
  rate: BucketRate,
  now: number,
): { readonly taken: boolean; readonly bucket: Bucket } {
  const passed = Math.max(0, now - bucket.at);
  const tokens = Math.min(rate.burst, bucket.tokens + (passed / 1_000) * rate.perSecond);
  return tokens >= 1
    ? { taken: true, bucket: { tokens: tokens - 1, at: now } }
    : { taken: false, bucket: { tokens, at: now } };
}
