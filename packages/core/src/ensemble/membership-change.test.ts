import { type Membership, parseMembership, type ReconfigRequest, type Zxid } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { Members } from './members.ts';
import { planMembership } from './membership-change.ts';

const THREE = parse('server.1=a:1:2;3\nserver.2=b:1:2;3\nserver.3=c:1:2;3\nversion=100000000');
const RULES = { isStandaloneEnabled: true, isMultiAddressEnabled: false };
const VERSION = 0x100000005 as Zxid;

describe('an incremental change', () => {
  test('removes servers before it adds others, and takes the zxid of the txn as version', () => {
    const planned = plan({
      leavingServers: '1, 2',
      joiningServers: 'server.4=a:1:2:participant;3,server.5=e:1:2:observer;3',
    });
    expect(ids(planned)).toEqual(['3 participant', '4 participant', '5 observer']);
    expect(planned).toMatchObject({ version: VERSION });
  });

  test('replaces a member that joins with its id, in another role or with another address', () => {
    expect(ids(plan({ joiningServers: 'server.3=c:7:8:observer;9' }))).toEqual([
      '1 participant',
      '2 participant',
      '3 observer',
    ]);
  });

  test('ignores a leaving server that is not a member', () => {
    expect(ids(plan({ leavingServers: '9' }))).toHaveLength(3);
  });

  test.each([
    [{ joiningServers: 'server.4=d:1:2' }, 'there is no client port'],
    [{ joiningServers: 'server.4=d:1:1;3' }, 'must differ'],
    [{ joiningServers: 'server.x=d:1:2;3' }, 'is not server.N='],
    [{ joiningServers: `server.4=${'d'.repeat(200_000)}:1:2;3` }, 'elections allow at most'],
    [{ joiningServers: 'server.4=c:1:9;8' }, 'has the address c:1 of server.3'],
    [{ leavingServers: 'x' }, 'is not a server id'],
    [{ leavingServers: '1,2' }, '2 participants at least'],
    [{ leavingServers: '1,2,3' }, 'there is no voter'],
  ] as const)('%j is refused: %s', (request, reason) => {
    expect(faultOf(plan(request))).toContain(reason);
  });

  test('is refused by an ensemble with groups, as by Apache', () => {
    const grouped = parse('server.1=a:1:2;3\nserver.2=b:1:2;3\ngroup.1=1:2\nversion=100000000');
    expect(faultOf(planMembership(grouped, request({ leavingServers: '2' }), RULES, VERSION))).toContain('groups');
  });

  test('may keep only one participant if standaloneEnabled is false', () => {
    const rules = { ...RULES, isStandaloneEnabled: false };
    expect(ids(planMembership(THREE, request({ leavingServers: '1,2' }), rules, VERSION))).toEqual(['3 participant']);
  });
});

describe('a bulk change', () => {
  test('sets groups and weights', () => {
    const planned = plan({ newMembers: 'server.1=a:1:2;3,server.2=b:1:2;3,group.1=1:2,weight.1=2' });
    expect(planned).toMatchObject({
      hierarchy: {
        weights: new Map([
          [1, 2],
          [2, 1],
        ]),
      },
    });
  });

  test.each([
    ['server.1=a:1:2;3,server.1=b:1:2;3', 'there twice'],
    ['server.1=a:1:2;3,server.2=a:1:4;5', 'has the address a:1 of server.1'],
    ['server.1=a:1:2;3,server.2=b:1:2;3,group.1=1', 'server 2 is in no group'],
    ['server.1=a:1:2;3,server.2=b:1:2;3,group.1=1:2,weight.1=0,weight.2=0', 'weight 0'],
    ['nonsense', 'is neither server.N'],
    ['', 'there is no voter'],
  ])('%s is refused: %s', (newMembers, reason) => {
    expect(faultOf(plan({ newMembers }))).toContain(reason);
  });
});

describe('the members', () => {
  test('need a quorum of both while a change is proposed, and only of the new ones once it is committed', () => {
    const members = new Members(THREE, true);
    const { electorate } = members;
    const next = parse('server.3=c:1:2;3\nserver.4=d:1:2;3\nserver.5=e:1:2;3\nversion=100000005');
    members.propose(next);
    expect(electorate.isQuorum([1, 2])).toBe(false);
    expect(electorate.isQuorum([3, 4])).toBe(false);
    expect(electorate.isQuorum([2, 3, 4])).toBe(true);
    expect(members.commit(next)).toBe(true);
    expect(electorate.isQuorum([3, 4])).toBe(true);
    expect(members.commit(THREE)).toBe(false);
  });

  test('keep a leader that stays a participant at its address, and no other leader', () => {
    const members = new Members(THREE, true);
    const after = (text: string): boolean => {
      members.propose(parse(`${text}\nserver.2=b:1:2;3\nserver.3=c:1:2;3\nversion=100000005`));
      return members.keepsLeader(1);
    };
    expect(after('server.1=a:1:2;9')).toBe(true);
    expect(after('server.1=a:1:9;3')).toBe(true);
    expect(after('server.1=a:9:2;3')).toBe(false);
    expect(after('server.1=a:1:2:observer;3')).toBe(false);
    expect(after('server.4=d:1:2;3')).toBe(false);
  });
});

function plan(change: Partial<ReconfigRequest>): ReturnType<typeof planMembership> {
  return planMembership(THREE, request(change), RULES, VERSION);
}

function request(change: Partial<ReconfigRequest>): ReconfigRequest {
  return { op: 16, joiningServers: null, leavingServers: null, newMembers: null, currentConfigId: -1, ...change };
}

function parse(text: string): Membership {
  const membership = parseMembership(text);
  if ('fault' in membership) throw new Error(membership.fault);
  return membership;
}

function ids(planned: ReturnType<typeof planMembership>): readonly string[] {
  if ('fault' in planned) throw new Error(planned.fault);
  return planned.members.map(({ serverId, role }) => `${serverId} ${role}`);
}

function faultOf(planned: ReturnType<typeof planMembership>): string {
  return 'fault' in planned ? planned.fault : '';
}
