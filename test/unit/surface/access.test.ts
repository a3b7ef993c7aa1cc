import { expect, test } from 'vitest';
import { bearerAccepted } from '../../../supervisor/surface/bearer.ts';
import { formatListenUrl, isLoopback, parseListenUrl } from '../../../supervisor/surface/listen-url.ts';
import { originRefusal } from '../../../supervisor/surface/origin-guard.ts';

const loopback = { hosts: new Set<string>(), certified: null };

test('a bearer token is accepted only when it is the expected one', () => {
  expect(bearerAccepted('Bearer s3cret', 's3cret')).toBe(true);
  expect(bearerAccepted('bearer s3cret', 's3cret')).toBe(true);
  for (const wrong of [
    undefined,
    '',
    's3cret',
    'Basic s3cret',
    'Bearer s3cre',
    'Bearer s3cret2',
    'Bearer ',
  ]) {
    expect(bearerAccepted(wrong, 's3cret')).toBe(false);
  }
  expect(bearerAccepted('Bearer ', '')).toBe(false);
  expect(bearerAccepted(undefined, '')).toBe(false);
});

test('a Host header that is not ours is refused, whatever it resolves to', () => {
  for (const ours of ['127.0.0.1:80', 'localhost', 'LOCALHOST:9', '[::1]:8080', '127.8.8.8']) {
    expect(originRefusal(ours, undefined, loopback)).toBeNull();
  }
  for (const theirs of [
    undefined,
    '',
    'evil.example',
    'localhost.evil.example:80',
    '10.0.0.1',
    'a b',
    '127.0.0.1@x',
  ]) {
    expect(originRefusal(theirs, undefined, loopback)).toBe('host');
  }
});

test('an Origin is accepted only from the host it was sent to', () => {
  expect(originRefusal('localhost:80', 'http://localhost:5173', loopback)).toBeNull();
  for (const theirs of [
    'http://evil.example',
    'null',
    'http://127.0.0.1',
    '',
    'http://localhost.evil.example',
  ]) {
    expect(originRefusal('localhost:80', theirs, loopback)).toBe('origin');
  }
});

test('a name in the certificate or the configuration is ours too', () => {
  const rules = { hosts: new Set(['fleet.example']), certified: (host: string) => host === 'cert.example' };
  expect(originRefusal('fleet.example:443', 'https://fleet.example', rules)).toBeNull();
  expect(originRefusal('CERT.example', undefined, rules)).toBeNull();
  expect(originRefusal('other.example', undefined, rules)).toBe('host');
});

test('http:// is listened on only where nobody else can hear it', () => {
  expect(parseListenUrl('http://127.0.0.1:0')).toEqual({ secure: false, host: '127.0.0.1', port: 0 });
  expect(parseListenUrl('http://[::1]:8080/mcp')).toEqual({ secure: false, host: '::1', port: 8080 });
  expect(parseListenUrl('https://0.0.0.0')).toEqual({ secure: true, host: '0.0.0.0', port: 443 });
  for (const refused of [
    'http://0.0.0.0:80',
    'http://10.1.2.3',
    'http://example.com',
    'ftp://127.0.0.1',
    'nonsense',
  ]) {
    expect(() => parseListenUrl(refused)).toThrow(
      expect.objectContaining({ code: 'LISTEN_REFUSED', exitCode: 2 }),
    );
  }
});

test('a credential in a listen URL is refused and not repeated', () => {
  try {
    parseListenUrl('http://user:hunter2@127.0.0.1:0');
    expect.unreachable();
  } catch (error) {
    expect(String(error)).not.toContain('hunter2');
  }
});

test('a listen URL is written with the real port', () => {
  expect(formatListenUrl({ secure: false, host: '::1', port: 0 }, 81)).toBe('http://[::1]:81');
  expect(isLoopback('127.0.0.1.evil.example')).toBe(false);
});
