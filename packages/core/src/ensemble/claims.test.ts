import { type Membership, makeZxid, PacketType, parseMembership } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import type { ByteStream } from '../base/ports.ts';
import { findRefusalOfClaim } from './claims.ts';
import { Members } from './members.ts';

function membershipOf(version: number, ...hosts: readonly string[]): Membership {
  const lines = hosts.map((host, i) => `server.${i + 1}=${host}:2888:3888`);
  const membership = parseMembership([...lines, `version=${version.toString(16)}`].join('\n'));
  if ('fault' in membership) throw new Error(membership.fault);
  return membership;
}

describe('a server whose certificate names hosts of the membership', () => {
  const members = new Members(membershipOf(makeZxid(1, 0), 'a', 'b', 'c'), true);

  test.each([
    [1, ['a'], true],
    [2, ['a'], false],
    [2, ['a', 'b'], true],
    [3, [], false],
    [2, null, true],
    [2, undefined, true],
    // Not a member: it has no vote.
    [9, ['a'], true],
  ])('may use server id %s with %j: %s', (id, hosts, isBelieved) => {
    expect(members.refusalOfClaim(id, hosts) === null).toBe(isBelieved);
  });

  test('is checked when it sends its id, as follower and as observer, and not again', () => {
    const stream = { certifiedHosts: ['a'] } as unknown as ByteStream;
    const info = { serverId: 2, protocolVersion: 0x10000, configVersion: null, acceptedEpoch: 0, announces: 0 };
    for (const type of [PacketType.followerInfo, PacketType.observerInfo] as const) {
      expect(findRefusalOfClaim(stream, { ...info, type } as never, members)).toBe(
        'it claims to be server 2, and has proved to be a, not b',
      );
      expect(findRefusalOfClaim(stream, { ...info, type, serverId: 1 } as never, members)).toBeNull();
    }
    expect(findRefusalOfClaim(stream, { type: PacketType.ack, zxid: 0 } as never, members)).toBeNull();
  });

  test('may use its old and new host while a change is proposed, and then only the new one', () => {
    const moving = new Members(membershipOf(makeZxid(1, 0), 'a', 'b', 'c'), true);
    const next = membershipOf(makeZxid(1, 5), 'a', 'new', 'c', 'd');
    const admitted = () => [['b'], ['new']].map((hosts) => moving.refusalOfClaim(2, hosts) === null);
    expect(admitted()).toEqual([true, false]);
    expect(moving.hosts).toEqual(['a', 'b', 'c']);
    moving.propose(next);
    expect(admitted()).toEqual([true, true]);
    expect(moving.hosts).toEqual(['a', 'b', 'c', 'new', 'd']);
    moving.commit(next);
    expect(admitted()).toEqual([false, true]);
    expect(moving.hosts).toEqual(['a', 'new', 'c', 'd']);
  });
});
