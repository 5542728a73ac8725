import { describe, expect, test } from 'vitest';
import type { PeerAddress } from '../base/ports.ts';
import { PeerState } from '../zab/learner-peer.ts';
import { chooseForRoom } from './learner-room.ts';

/** Each from an address of its own, so that the oldest is closed first. */
interface Connected {
  readonly serverId: number;
  /** It has sent FOLLOWERINFO or OBSERVERINFO. */
  readonly isIdentified?: boolean;
  readonly isClosing?: boolean;
}

/** Servers 1 to 3 are members. Links are numbered from 0 in the order of the list. */
function choose(connected: readonly Connected[], isCrowded = false): ReturnType<typeof chooseForRoom> {
  return chooseForRoom(
    {
      learners: connected.map(({ serverId, isIdentified = true }, link) => ({
        link,
        serverId,
        state: isIdentified ? PeerState.serving : PeerState.connected,
      })),
      remoteOf: (link) => (connected[link]?.isClosing ? null : addressOf(link)),
      isMember: (serverId) => serverId >= 1 && serverId <= 3,
    },
    isCrowded,
  );
}

function addressOf(number: number): PeerAddress {
  return { ip: new Uint8Array([10, 0, 0, number]), host: `10.0.0.${number}`, port: 1 };
}

const MEMBERS: readonly Connected[] = [{ serverId: 2 }, { serverId: 3 }];
const STRANGER: Connected = { serverId: -1, isIdentified: false };
const OUTSIDER: Connected = { serverId: 9 };

const many = (count: number, one: Connected): Connected[] => new Array<Connected>(count).fill(one);

describe('room for another learner', () => {
  test('is there while fewer than 64 have not identified themselves, and fewer than 64 are not members', () => {
    expect(choose([])).toBe('none');
    expect(choose([...MEMBERS, ...many(63, STRANGER), ...many(63, OUTSIDER)])).toBe('none');
  });

  test('is made by the oldest of 64 that have not identified themselves', () => {
    expect(choose([...MEMBERS, OUTSIDER, ...many(64, STRANGER)])).toEqual({
      link: 3,
      reason: 'it has not identified itself, like 63 others, and another one has connected',
    });
  });

  test('is made by the oldest of 64 that are not members', () => {
    expect(choose([...MEMBERS, STRANGER, ...many(64, OUTSIDER)])).toEqual({
      link: 3,
      reason: 'it is not a member of the ensemble, and others need room',
    });
  });

  test('does not depend on links that are closing already', () => {
    const closing = [STRANGER, OUTSIDER].map((one) => ({ ...one, isClosing: true }));
    expect(choose(closing.flatMap((one) => many(64, one)))).toBe('none');
  });
});

describe('room for another learner while descriptors run short', () => {
  test('is made by one that has not identified itself, before one that is not a member', () => {
    expect(choose([...MEMBERS, OUTSIDER, STRANGER], true)).toEqual({
      link: 3,
      reason: 'it has not identified itself, and another one has connected',
    });
    expect(choose([...MEMBERS, OUTSIDER], true)).toMatchObject({ link: 2 });
  });

  test('is never made by a member: the new connection is refused', () => {
    expect(choose(MEMBERS, true)).toBe('full');
    expect(choose([...MEMBERS, { ...STRANGER, isClosing: true }, { ...OUTSIDER, isClosing: true }], true)).toBe('full');
  });
});
