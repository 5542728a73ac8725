import { ErrorCode, type Membership, parseMembership, type ReconfigRequest, type Zxid } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import type { Quorum } from '../election/quorum.ts';
import type { ReconfigPlan } from '../request/reconfig-preparer.ts';
import { MembershipKeeper } from './membership-keeper.ts';
import { Reconfiguration } from './reconfiguration.ts';

const THREE = parse('server.1=a:1:2;3\nserver.2=b:1:2;3\nserver.3=c:1:2;3\nversion=100000000');
const NEXT = parse('server.1=a:1:2;3\nserver.2=b:1:2;3\nversion=100000004');
const RULES = { isStandaloneEnabled: true, isMultiAddressEnabled: false };
const VERSION = 0x100000005 as Zxid;
const LEAVES: Partial<ReconfigRequest> = { leavingServers: '3' };
const FAULTY: Partial<ReconfigRequest> = { leavingServers: 'x' };

/** @param synchronized servers that the leader can count */
function make(synchronized: readonly number[], isReconfigEnabled = true) {
  const warnings: string[] = [];
  const trace = { emit: (event: object) => void ('message' in event && warnings.push(String(event.message))) };
  const keeper = new MembershipKeeper({
    serverId: 1,
    membership: THREE,
    isReconfigEnabled,
    store: null,
    trace,
    wallMs: () => 0,
  });
  const leader = { wouldReach: (quorum: Quorum) => quorum.isReachedBy([...synchronized]) };
  const reconfiguration = new Reconfiguration(keeper, leader, RULES, trace);
  const plan = (change: Partial<ReconfigRequest>): ReconfigPlan =>
    reconfiguration.plan(
      { op: 16, joiningServers: null, leavingServers: null, newMembers: null, currentConfigId: -1, ...change },
      VERSION,
    );
  return { keeper, plan, warnings };
}

describe('a reconfig at the leader', () => {
  test('gets the zxid of its txn as version', () => {
    expect(make([1, 2]).plan(LEAVES)).toBe(
      'server.1=a:1:2:participant;0.0.0.0:3\nserver.2=b:1:2:participant;0.0.0.0:3\nversion=100000005',
    );
  });

  test('is refused if reconfigEnabled is false', () => {
    expect(make([1, 2, 3], false).plan(LEAVES)).toBe(ErrorCode.reconfigDisabled);
  });

  test('is refused while another one is proposed, before other checks, and not once that is in force', () => {
    const { keeper, plan } = make([1, 2, 3]);
    keeper.members.propose(NEXT);
    expect(plan({ ...FAULTY, currentConfigId: 7 })).toBe(ErrorCode.reconfigInProgress);
    keeper.commit(NEXT);
    expect(plan({ joiningServers: 'server.4=d:1:2;3', currentConfigId: NEXT.version })).toContain('server.4=d:1:2');
  });

  test('is refused if it does not name the version in force', () => {
    const { plan, warnings } = make([1, 2, 3]);
    expect(plan({ ...FAULTY, currentConfigId: 0x1_0000_0001 })).toBe(ErrorCode.badVersion);
    expect(warnings).toEqual(['a reconfig is refused: it is to change version 100000001, and 100000000 is in force']);
  });

  test('is refused if it is malformed', () => {
    expect(make([]).plan(FAULTY)).toBe(ErrorCode.badArguments);
  });

  test('is refused last for an id that does not fit into session ids, visible only to authorized clients', () => {
    const line = 'server.256=d:1:2:observer;3';
    for (const change of [{ joiningServers: line }, { newMembers: `server.1=a:1:2;3,server.2=b:1:2;3,${line}` }]) {
      const { plan, warnings } = make([1, 2]);
      expect(plan(change)).toEqual({ errorIfAllowed: ErrorCode.badArguments });
      expect(warnings).toEqual(['a reconfig is refused: server.256: ids must be at most 255']);
      expect(make([]).plan(change)).toBe(ErrorCode.newConfigNoQuorum);
    }
  });

  test('is refused while too few of the new participants follow, though enough of the old ones do', () => {
    const joins = { newMembers: 'server.1=a:1:2;3\nserver.4=d:1:2;3\nserver.5=e:1:2;3' };
    expect(make([1, 2, 3]).plan(joins)).toBe(ErrorCode.newConfigNoQuorum);
    expect(make([1, 4]).plan(joins)).toContain('server.4=d:1:2');
  });
});

function parse(text: string): Membership {
  const membership = parseMembership(text);
  if ('fault' in membership) throw new Error(membership.fault);
  return membership;
}
