import { parseMembership } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { Members } from './members.ts';

test('TLS addresses are not sent to other servers, because servers before 3.9 refuse them', () => {
  const membership = parseMembership(
    'server.1=a:2888:3888:participant;0.0.0.0:2181;0.0.0.0:2281\nserver.2=b:2888:3888:observer;;b:2281\nversion=0',
  );
  if ('fault' in membership) throw new Error(membership.fault);
  expect(new Members(membership).configText).toBe(
    'server.1=a:2888:3888:participant;0.0.0.0:2181\nserver.2=b:2888:3888:observer\nversion=0',
  );
});

test('a server that listens on all interfaces does so once per port', () => {
  const membership = parseMembership('server.1=a:2888:3888|b:2888:3888|c:2889:3888\nserver.2=d:2888:3888\nversion=0');
  if ('fault' in membership) throw new Error(membership.fault);
  const members = new Members(membership);
  expect(members.quorumListenersOf(1, false)).toHaveLength(3);
  expect(members.quorumListenersOf(1, true)).toEqual([
    { host: 'a', port: 2888 },
    { host: 'c', port: 2889 },
  ]);
});
