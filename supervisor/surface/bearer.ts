import { createHash, timingSafeEqual } from 'node:crypto';

const SCHEME = /^bearer +/i;

/**
 * Whether an Authorization header carries the expected bearer token.
 *
 * Both sides are hashed first, so the comparison takes the same time whatever their lengths and
 * wherever they differ. An empty expected token accepts nobody.
 */
export function bearerAccepted(authorization: string | undefined, expected: string): boolean {
  const presented = authorization !== undefined && SCHEME.test(authorization) ? authorization : '';
  const same = timingSafeEqual(digest(presented.replace(SCHEME, '')), digest(expected));
  return same && expected !== '' && presented !== '';
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest();
}
