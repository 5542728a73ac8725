import { expect, it } from 'vitest';
import type { MemberStatus } from './messages.ts';
import { describeMember, type ShownMember } from './screen.ts';

function member(id: number, changes: Partial<ShownMember> = {}): ShownMember {
  const status: MemberStatus = { role: 'following', isServing: true, leader: 2, epoch: 3, lastZxid: 0x300000005 };
  return { id, clientPort: 2180 + id, status, cutFrom: [], isRunning: true, isPaused: false, ...changes };
}

const LOOKING: MemberStatus = { role: 'looking', isServing: false, leader: null, epoch: 3, lastZxid: 0 };

it('shows epoch and zxid of a server that serves', () => {
  const members = [member(1), member(2), member(3)];
  expect(describeMember(members[0] as ShownMember, members)).toBe(
    'server 1  127.0.0.1:2181  follower    epoch 3  zxid 0x300000005',
  );
});

it('shows how many of how many servers reach each other where they are no quorum', () => {
  const alone = member(1, { status: LOOKING });
  const members = [alone, member(2, { isRunning: false, status: null }), member(3, { isPaused: true })];
  expect(describeMember(alone, members)).toBe('server 1  127.0.0.1:2181  looking     epoch 3  no quorum: 1 of 3');
});

it('counts the servers on its side of a cut', () => {
  const cut = member(1, { status: LOOKING, cutFrom: [2, 3] });
  const members = [cut, member(2, { cutFrom: [1] }), member(3, { cutFrom: [1] })];
  expect(describeMember(cut, members)).toBe(
    'server 1  127.0.0.1:2181  looking     epoch 3  no quorum: 1 of 3  cut off from 2, 3',
  );
});

it('shows neither while a quorum elects', () => {
  const voter = member(1, { status: LOOKING });
  const members = [voter, member(2, { status: LOOKING }), member(3, { isRunning: false, status: null })];
  expect(describeMember(voter, members)).toBe('server 1  127.0.0.1:2181  looking     epoch 3');
});
