import { describe, expect, test } from 'vitest';
import { parseDuration, parseTtl } from './duration.ts';
import { parseLocation } from './location.ts';

describe('a location', () => {
  test.each([
    ['/app', { path: '/app', service: { kind: 'current' } }],
    ['/a:b/c', { path: '/a:b/c', service: { kind: 'current' } }],
    ['zk://zk1:2181,zk2:2181/app/x', { path: '/app/x', service: { kind: 'hosts', hosts: 'zk1:2181,zk2:2181' } }],
    ['zk://[::1]:2181', { path: '/', service: { kind: 'hosts', hosts: '[::1]:2181' } }],
    ['prod:/app', { path: '/app', service: { kind: 'profile', name: 'prod' } }],
    ['app', { path: 'app', service: { kind: 'current' } }],
  ])('%s', (text, expected) => {
    expect(parseLocation(text)).toEqual(expected);
  });
});

describe('a time on the command line', () => {
  test.each([
    ['500ms', 500],
    ['10s', 10_000],
    ['1.5m', 90_000],
    ['2min', 120_000],
    ['2h', 7_200_000],
    ['1d', 86_400_000],
  ])('%s is %i ms', (text, ms) => {
    expect(parseDuration(text, '--timeout')).toBe(ms);
  });

  test.each(['', '-1s', 's', '1 week', '1e3', 'ten', '0.1ms'])('rejects "%s"', (text) => {
    expect(() => parseDuration(text, '--timeout')).toThrow(
      `--timeout: expected a time such as 500ms, 10s or 2m, found "${text}"`,
    );
  });

  test('without a unit is refused with both that it may mean, but for a TTL, which zkCli has in milliseconds', () => {
    expect(() => parseDuration('30', '--for')).toThrow('found "30"; say 30s or 30ms');
    expect(parseTtl('30')).toBe(30);
    expect(parseTtl('30s')).toBe(30_000);
  });
});
