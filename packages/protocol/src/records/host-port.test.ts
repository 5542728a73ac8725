import { expect, test } from 'vitest';
import { canonicalHost, formatHostPort, isWildcardHost, parsePort, splitHostAndPorts } from './host-port.ts';

/** Each spelling beside what Java's InetAddress makes of it. */
test.each([
  ['::1', '0:0:0:0:0:0:0:1'],
  ['::', '0:0:0:0:0:0:0:0'],
  ['fe80::A:0:1', 'fe80:0:0:0:0:a:0:1'],
  ['FE80:0::01', 'fe80:0:0:0:0:0:0:1'],
  ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
  ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
  ['::ffff:1.2.3.4', '1.2.3.4'],
  ['::ffff:102:304', '1.2.3.4'],
  ['64:ff9b::1.2.3.4', '64:ff9b:0:0:0:0:102:304'],
])('%s and %s are one host', (spelling, canonical) => {
  expect(canonicalHost(spelling)).toBe(canonical);
  expect(canonicalHost(canonical)).toBe(canonical);
});

test('the zone of an address stays with it', () => {
  expect(canonicalHost('fe80::1%eth0')).toBe('fe80:0:0:0:0:0:0:1%eth0');
});

test.each([
  'zoo1',
  '10.0.0.1',
  'zz::1',
  '1:2:3',
  ':::',
  '1::2::3',
  '1:2:3:4:5:6:7:8:9',
  '::12345',
  '::1.2.3',
  '::1.2.3.256',
])('%s is no IPv6 literal, and stays as it is', (host) => {
  expect(canonicalHost(host)).toBe(host);
});

test('host and ports are the parts between the colons, also behind brackets', () => {
  expect(splitHostAndPorts('a:1:2')).toEqual(['a', '1', '2']);
  expect(splitHostAndPorts('[::1]:1:2:observer')).toEqual(['0:0:0:0:0:0:0:1', '1', '2', 'observer']);
  expect(splitHostAndPorts('[a]')).toEqual(['a']);
  expect(splitHostAndPorts('a:1::')).toEqual(['a', '1']);
  expect(splitHostAndPorts('[::1')).toBeNull();
  expect(splitHostAndPorts('[::1]1:2')).toBeNull();
});

test('an address is written with brackets around a host with colons', () => {
  expect(formatHostPort({ host: 'zoo1', port: 1 })).toBe('zoo1:1');
  expect(formatHostPort({ host: '0:0:0:0:0:0:0:1', port: 1 })).toBe('[0:0:0:0:0:0:0:1]:1');
});

test('a port is a decimal number from 0 to 65535', () => {
  expect(parsePort('0')).toBe(0);
  expect(parsePort('65535')).toBe(65535);
  for (const text of ['', '65536', '-1', '1 ', '0x1', '1e3', '99999999999']) expect(parsePort(text), text).toBeNull();
});

test('a wildcard is the unspecified address of either family', () => {
  for (const host of ['0.0.0.0', '::', '0:0:0:0:0:0:0:0', '::0']) expect(isWildcardHost(host), host).toBe(true);
  for (const host of ['127.0.0.1', '::1', 'zoo1']) expect(isWildcardHost(host), host).toBe(false);
});
