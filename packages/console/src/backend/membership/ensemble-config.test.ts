import { expect, test } from 'vitest';
import { parseConfig } from './ensemble-config.ts';

// From ZooKeeper's manual ("Dynamic Reconfiguration").
test('members are parsed with the address for clients', () => {
  const text = [
    'server.1=125.23.63.23:1234:1235;1236',
    'server.2=125.23.63.24:1234:1235:participant;0.0.0.0:1236',
    'server.3=125.23.63.25:1234:1235:observer;125.23.63.26:1236',
    'server.4=[2001:db8::4]:2888:3888:participant;[::]:2181',
    'server.5=zk5:2888:3888:participant',
    'version=100000003',
  ].join('\n');
  const config = parseConfig(text);
  expect(config.version).toBe('100000003');
  expect(config.members.map(({ id, client }) => [id, client])).toEqual([
    ['1', '125.23.63.23:1236'],
    ['2', '125.23.63.24:1236'],
    ['3', '125.23.63.26:1236'],
    ['4', '[2001:db8::4]:2181'],
    ['5', null],
  ]);
});

test('a server that stores no members has none', () => {
  expect(parseConfig('')).toEqual({ text: '', version: null, members: [] });
});
