import { PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import {
  catchingUp,
  committedBy,
  makeLearner,
  stopReason,
  synchronized,
  UPTODATE,
  z,
} from '../testing/learner-stages.ts';
import { commit, inform, leaderInfo, newLeader, proposal } from '../testing/test-learner.ts';

/** Known defects of other servers; the numbers are those of ZooKeeper's issues. */
describe('history does not repeat itself', () => {
  test('1282: an epoch that was acknowledged by NEWLEADER is on the disk, also without UPTODATE', () => {
    const one = catchingUp();
    one.receive(newLeader(2));
    expect(one.takeAcks()).toEqual([]);
    one.diskDoesAll();
    expect(one.takeAcks()).toEqual([z(2, 0)]);
    one.restart();
    expect(one.disk.recover().currentEpoch).toBe(2);
  });

  test('3911, 4646: the history is durable before NEWLEADER is acknowledged', () => {
    const one = catchingUp();
    one.receive(proposal(z(1, 4)), commit(z(1, 4)), proposal(z(1, 5)), newLeader(2));
    expect(one.takeAcks()).toEqual([]);
    one.disk.sync(one.learner, 1);
    expect(one.takeAcks()).toEqual([]);
    one.diskDoesAll();
    expect(one.takeAcks()).toEqual([z(2, 0), z(1, 5)]);
    one.restart();
    expect(one.disk.lastZxid).toBe(z(1, 5));
  });

  test('4643: the epoch is not written before the history is durable', () => {
    const one = catchingUp();
    one.receive(proposal(z(1, 4)), newLeader(2));
    expect(one.disk.epochWrites).toEqual([]);
    one.restart();
    expect(one.disk.recover()).toMatchObject({ currentEpoch: 1, lastZxid: z(1, 3) });
  });

  test('4685: no ACK of a proposal overtakes that of NEWLEADER, however fast the log is', () => {
    const one = catchingUp();
    one.receive(proposal(z(2, 1)));
    one.disk.sync(one.learner);
    one.receive(newLeader(2), proposal(z(2, 2)));
    one.disk.sync(one.learner);
    expect(one.takeSent()).toEqual([]);
    one.diskDoesAll();
    expect(one.takeAcks()).toEqual([z(2, 0), z(2, 1), z(2, 2)]);
  });

  test('4394: a commit between NEWLEADER and UPTODATE of a proposal before NEWLEADER is a commit', () => {
    const one = catchingUp();
    one.receive(proposal(z(2, 1)), newLeader(2), commit(z(2, 1)));
    one.diskDoesAll();
    expect(one.learner.lastCommitted).toBe(z(2, 1));
    one.receive(UPTODATE);
    expect(one.learner.phase).toBe('broadcast');
  });

  test('4712: a log sync reported after the role is over causes no acknowledgement', () => {
    const one = synchronized();
    one.receive(proposal(z(2, 1)), commit(z(2, 1)));
    one.learner.onLinkClosed('closed by peer');
    one.takeAsked();
    one.disk.sync(one.learner);
    expect(one.takeAsked()).toEqual([]);
  });

  test('4925: txns of the synchronization are handled like all others', () => {
    const one = catchingUp();
    one.receive(proposal(z(1, 4)), commit(z(1, 4)), newLeader(2));
    one.diskDoesAll();
    one.receive(UPTODATE, proposal(z(2, 1)), commit(z(2, 1)));
    one.diskDoesAll();
    const proposed = one.takeAsked().flatMap((asked) => (asked.kind === 'proposed' ? [asked.zxid] : []));
    expect(proposed).toEqual([z(1, 4), z(2, 1)]);
  });

  test('4882: a commit of what the log has not reported is not applied', () => {
    const one = synchronized();
    one.receive(proposal(z(2, 1)), proposal(z(2, 2)), commit(z(2, 2)));
    one.disk.sync(one.learner, 1);
    expect(committedBy(one)).toEqual([z(2, 1)]);
    expect(one.learner.lastCommitted).toBe(z(2, 1));
  });

  test('5094: a link lost behind TRUNC leaves nothing applied that is not in the log', () => {
    const one = makeLearner();
    one.learner.onConnected();
    one.receive(leaderInfo(2));
    one.diskDoesAll();
    one.receive({ type: PacketType.trunc, zxid: z(1, 2) });
    one.diskDoesAll();
    one.receive(proposal(z(2, 1)), commit(z(2, 1)), proposal(z(2, 2)), commit(z(2, 2)));
    one.disk.sync(one.learner, 1);
    one.learner.onLinkClosed('closed by peer');
    expect(committedBy(one)).toEqual([z(2, 1)]);
    one.restart();
    expect(one.disk.log).toEqual([z(1, 1), z(1, 2), z(2, 1)]);
  });

  test('3642, 2872: a link lost behind SNAP leaves the old history or the snapshot, and the next role says which', () => {
    const one = makeLearner();
    const takeSnapshot = (epoch: number) => {
      one.learner.onConnected();
      one.receive(leaderInfo(epoch));
      one.diskDoesAll();
      one.receive({ type: PacketType.snap, zxid: z(1, 9) });
      one.snapshotArrives();
    };
    const lastZxidSaid = () => one.takeSent().flatMap((p) => (p.type === PacketType.ackEpoch ? [p.zxid] : []));
    takeSnapshot(2);
    one.receive(proposal(z(1, 10)));
    one.restart();
    takeSnapshot(3);
    expect(lastZxidSaid()).toEqual([z(1, 3), z(1, 3)]);
    one.finishChange();
    one.restart();
    one.beginDiff(4);
    expect(lastZxidSaid()).toEqual([z(1, 9)]);
  });

  test('3104: NEWLEADER behind a snapshot and more waits for the last of it', () => {
    const one = makeLearner();
    one.learner.onConnected();
    one.receive(leaderInfo(2));
    one.diskDoesAll();
    one.receive({ type: PacketType.snap, zxid: z(1, 9) });
    one.snapshotArrives();
    one.receive(proposal(z(1, 10)), commit(z(1, 10)), newLeader(2));
    expect(one.learner.phase).toBe('preparing');
    one.finishChange();
    expect(one.disk.epochWrites).toEqual([]);
    one.diskDoesAll();
    expect(one.takeAcks()).toEqual([z(2, 0)]);
    expect(one.disk).toMatchObject({ base: z(1, 9), log: [z(1, 10)] });
  });

  test('1154: a DIFF that does not begin where this server’s history ends is refused', () => {
    const one = catchingUp();
    one.receive(proposal(z(1, 5)));
    expect(stopReason(one)).toMatch(/gap/);
    expect(one.disk.unsynced).toEqual([]);
  });

  test('2355: the zxid of DIFF, which has not arrived, changes nothing', () => {
    const one = makeLearner();
    one.learner.onConnected();
    one.receive(leaderInfo(2));
    one.diskDoesAll();
    one.receive({ type: PacketType.diff, zxid: z(1, 8) });
    one.diskDoesAll();
    expect(one.learner).toMatchObject({ lastProposed: z(1, 3), lastCommitted: z(1, 3) });
    one.learner.onLinkClosed('closed by peer');
    one.restart();
    expect(one.learner.lastProposed).toBe(z(1, 3));
  });

  test('1551: an observer loses no txn between snapshot and UPTODATE', () => {
    const one = makeLearner({ kind: 'observer' });
    one.learner.onConnected();
    one.receive(leaderInfo(2));
    one.diskDoesAll();
    one.receive({ type: PacketType.snap, zxid: z(1, 9) });
    one.snapshotArrives();
    one.receive(inform(z(1, 9)), inform(z(1, 10)));
    one.diskDoesAll();
    one.receive(inform(z(2, 1)), newLeader(2), inform(z(2, 2)));
    one.diskDoesAll();
    one.receive(inform(z(2, 3)), UPTODATE);
    one.diskDoesAll();
    expect(one.disk.log).toEqual([z(1, 10), z(2, 1), z(2, 2), z(2, 3)]);
    expect(one.learner).toMatchObject({ phase: 'broadcast', lastCommitted: z(2, 3) });
  });

  test('a snapshot that is older than the log leaves nothing of the log, and what follows it follows it (Camunda 6092)', () => {
    const one = makeLearner();
    one.learner.onConnected();
    one.receive(leaderInfo(2));
    one.diskDoesAll();
    one.receive({ type: PacketType.snap, zxid: z(1, 1) });
    one.snapshotArrives();
    one.diskDoesAll();
    expect(one.learner).toMatchObject({ lastProposed: z(1, 1), lastCommitted: z(1, 1) });
    one.receive(proposal(z(1, 1)), commit(z(1, 1)), proposal(z(2, 1)), commit(z(2, 1)), newLeader(2));
    one.diskDoesAll();
    expect(one.disk).toMatchObject({ base: z(1, 1), log: [z(2, 1)], currentEpoch: 2 });
    expect(one.takeAcks()).toEqual([z(2, 0)]);
  });
});
