import { formatMembership, type Membership, makeZxid, OpCode, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { makeMembership } from '../virtual-ensemble.ts';
import { EnsembleScript, type ScriptTxn } from './testing/ensemble-script.ts';

function membershipOf(ids: readonly number[], version: Zxid): Membership {
  const { members, hierarchy } = makeMembership(4);
  return { version, members: members.filter(({ serverId }) => ids.includes(serverId)), hierarchy };
}

/** The next txn of a leader: it changes the members to these. */
function changeTo(script: EnsembleScript, ids: readonly number[], leader = 3): ScriptTxn {
  const { zxid } = script.nextTxn(leader);
  const data = new TextEncoder().encode(formatMembership(membershipOf(ids, zxid)));
  return script.nextTxn(leader, { type: OpCode.reconfig, path: '/zookeeper/config', data, version: -1 });
}

function isInForce(script: EnsembleScript, server: number, ids: readonly number[], version: Zxid): void {
  script.trace(server, { kind: 'membership-changed', committed: membershipOf(ids, version), proposed: null });
}

/** From the proposal until all have it in force. */
function change(script: EnsembleScript, ids: readonly number[], leader = 3, followers = [1, 2]): Zxid {
  const txn = changeTo(script, ids, leader);
  script.spread(leader, followers, txn);
  for (const server of [leader, ...followers]) {
    if (server !== leader) script.commit(leader, server, txn.zxid);
    isInForce(script, server, ids, txn.zxid);
    script.committed(server, txn.zxid);
    script.apply(server, txn);
  }
  return txn.zxid;
}

describe('the rules of the membership', () => {
  it('allow one change after the other', () => {
    const script = new EnsembleScript().serve();
    change(script, [1, 2, 3, 4]);
    change(script, [1, 2, 3]);
    expect(script.broken).toEqual([]);
  });

  it('allow an observer to lead after a change has given it a vote (E13)', () => {
    const script = new EnsembleScript().serve();
    change(script, [1, 2, 3, 4]);
    script.role(4, 'looking');
    script.role(4, 'leading', 4);
    expect(script.broken).not.toContain('E13');
  });

  it('R1: two servers have other members under one version', () => {
    const script = new EnsembleScript().serve();
    const version = change(script, [1, 2, 3, 4]);
    isInForce(script, 1, [1, 2, 3], version);
    expect(script.broken).toEqual(['R1']);
  });

  it('R1: a server goes back to an older membership', () => {
    const script = new EnsembleScript().serve();
    const first = change(script, [1, 2, 3, 4]);
    change(script, [1, 2, 3]);
    isInForce(script, 2, [1, 2, 3, 4], first);
    expect(script.broken).toEqual(['R1']);
  });

  it('R1 allows a server to start with the membership of its files', () => {
    const script = new EnsembleScript().serve();
    const first = change(script, [1, 2, 3, 4]);
    change(script, [1, 2, 3]);
    script.crash(2);
    isInForce(script, 2, [1, 2, 3, 4], first);
    expect(script.broken).toEqual([]);
  });

  it('R1: a leader proposes a membership that cannot be parsed', () => {
    const script = new EnsembleScript().serve();
    const data = new TextEncoder().encode('server.one=?');
    script.write(3, [1, 2], script.nextTxn(3, { type: OpCode.reconfig, path: '/zookeeper/config', data, version: -1 }));
    expect(script.broken).toEqual(['R1']);
  });

  it('R3: a leader proposes a change while another one is not committed', () => {
    const script = new EnsembleScript().serve();
    script.spread(3, [1, 2], changeTo(script, [1, 2, 3, 4]));
    script.spread(3, [1, 2], changeTo(script, [1, 2, 3]));
    expect(script.broken).toEqual(['R3']);
  });

  it('R4: a follower has a change in force that is not committed', () => {
    const script = new EnsembleScript().serve();
    const txn = changeTo(script, [1, 2, 3, 4]);
    script.spread(3, [1, 2], txn);
    isInForce(script, 1, [1, 2, 3, 4], txn.zxid);
    expect(script.broken).toEqual(['R4']);
  });

  it('R4: a server has the membership of a leader that never was', () => {
    const script = new EnsembleScript().serve();
    isInForce(script, 1, [1, 2, 3], makeZxid(7, 0));
    expect(script.broken).toEqual(['R4']);
  });

  it('R6: a server leads that is no longer a participant', () => {
    const script = new EnsembleScript().serve();
    change(script, [1, 2]);
    // The last but one may have been the newest that it knew of.
    change(script, [1, 2, 4]);
    for (const server of [1, 2]) script.disconnect(server, 3);
    for (const server of [1, 2, 3]) script.role(server, 'looking');
    script.elect(3, [1, 2, 3], 2);
    script.begin(3, 2, [1, 2]);
    expect(script.broken).toEqual(['R6']);
  });
});
