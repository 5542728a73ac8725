import { makeZxid, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { createTxn, EnsembleScript, txnOf } from './testing/ensemble-script.ts';

function serving(): EnsembleScript {
  return new EnsembleScript().serve();
}

describe('the rules of logs and disks', () => {
  it('Z3: a server leaves out a committed txn', () => {
    const script = serving();
    const [first, second, third] = [1, 2, 3].map(() => script.write(3, [2]));
    for (const txn of [first!, second!, third!]) script.store(1, txn);
    script.apply(1, first!);
    script.apply(1, third!);
    expect(script.broken).toEqual(['Z3']);
  });

  it('Z4: a server considers committed what is not, at this position', () => {
    const script = serving();
    const open = script.nextTxn(3);
    script.propose(3, 1, open);
    script.store(1, open);
    script.committed(1, open.zxid);
    expect(script.broken).toEqual(['Z4']);
  });

  it('Z4 waits for a txn that is logged after it is known to be committed', () => {
    const script = serving();
    const txn = script.write(3, [2]);
    script.committed(1, txn.zxid);
    script.log(1, txn);
    expect(script.broken).toEqual([]);
  });

  it('Z4 and Z5 wait for the epoch, before which a learner may have its history', () => {
    const script = serving();
    const open = script.nextTxn(3);
    script.propose(3, 1, open);
    script.store(1, open);
    script.disconnect(1, 3);
    script.role(1, 'looking');
    script.vote(3, 1, { leader: 3, state: 2 });
    script.role(1, 'following', 3);
    script.committed(1, open.zxid);
    script.apply(1, open);
    expect(script.broken).toEqual([]);
    script.establish(1, 1);
    expect(script.broken).toEqual(['Z4', 'Z5']);
  });

  it.each([
    ['newest first', [8, 3], []],
    ['oldest first', [3, 8], ['D6']],
  ] as const)('D6: files of a log are set aside %s', (_order, zxids, broken) => {
    const script = new EnsembleScript().serve();
    const left = new Set([1, 3, 8]);
    for (const zxid of zxids) {
      left.delete(zxid);
      script.checker.onLogSetAside(1, zxid, [...left]);
    }
    expect(script.broken).toEqual(broken);
  });

  it('D6: a snapshot has a znode twice', () => {
    const script = new EnsembleScript().serve();
    script.checker.onSnapshotFaulty(1, 8, '/a stands in it twice');
    expect(script.broken).toEqual(['D6']);
  });

  describe('D5: the purge leaves', () => {
    function purged(leave: (zxids: readonly number[]) => [snapshots: number[], logBegin: number | null]): string[] {
      const script = serving();
      const zxids = [1, 2, 3, 4, 5].map(() => {
        const txn = script.write(3, [1, 2]);
        return txn.zxid as number;
      });
      const [snapshots, logBegin] = leave(zxids);
      script.checker.onPurged(1, snapshots, logBegin);
      return [...script.broken];
    }

    it.each([
      ['that it is in', 1],
      ['of the next txn', 2],
    ])('three snapshots and the log from the file on %s', (_what, log) => {
      expect(purged((zxids) => [[zxids[1]!, zxids[3]!, zxids[4]!], zxids[log]!])).toEqual([]);
    });

    it('a gap between the oldest snapshot and the log', () => {
      expect(purged((zxids) => [[zxids[0]!, zxids[3]!, zxids[4]!], zxids[2]!])).toEqual(['D5']);
      expect(purged((zxids) => [[zxids[0]!, zxids[3]!, zxids[4]!], null])).toEqual(['D5']);
    });

    it('two snapshots', () => {
      expect(purged((zxids) => [[zxids[3]!, zxids[4]!], zxids[0]!])).toEqual(['D5']);
    });
  });

  it('Z5: a server applies what is not committed', () => {
    const script = serving();
    const txn = script.nextTxn(3);
    script.spread(3, [1], txn);
    script.apply(1, txn);
    expect(script.broken).toEqual(['Z5']);
  });

  it('Z5: a server applies another txn under a committed zxid', () => {
    const script = serving();
    const txn = script.write(3, [2]);
    script.store(1, txn);
    script.apply(1, txnOf(txn.zxid, createTxn('/another')));
    expect(script.broken).toEqual(['Z5']);
  });

  it('Z10: a truncated txn comes back after another leader has its quorum', () => {
    const script = serving();
    script.write();
    const open = script.nextTxn(3);
    script.propose(3, 1, open);
    script.store(1, open);
    script.crash(3);
    for (const server of [1, 2]) {
      script.disconnect(server, 3);
      script.role(server, 'looking');
    }
    script.elect(2, [2, 3], 2);
    script.begin(2, 2, [3]);
    script.vote(2, 1, { leader: 2, state: 2, electionEpoch: 2 });
    script.role(1, 'following', 2);
    script.greet(1, 2);
    script.promise(1, 2, 2);
    script.synchronize(1, 2, 2);
    expect(script.broken).toEqual([]);
    script.log(1, open);
    expect(script.broken).toEqual(['Z10']);
  });

  it('Z11: a log has a gap', () => {
    const script = serving();
    const [first, second] = [script.write(3, [2]), script.write(3, [2])];
    script.store(1, second);
    expect(first.zxid).toBeLessThan(second.zxid);
    expect(script.broken).toEqual(['Z11']);
  });

  it('Z11: the end of an epoch is missing although it is committed', () => {
    const script = serving();
    script.write();
    const last = script.write(3, [2]);
    script.crash(3);
    for (const server of [1, 2]) {
      script.disconnect(server, 3);
      script.role(server, 'looking');
    }
    script.elect(2, [1, 2], 2);
    script.begin(2, 2, [1]);
    const txn = script.write(2, [1]);
    expect(script.broken).toEqual([]);
    script.checker.onRecovered(1, {
      acceptedEpoch: 2,
      currentEpoch: 2,
      base: 0,
      txns: script.logs.get(1)!.filter(({ zxid }) => zxid !== last.zxid),
    });
    expect(txn.zxid).toBe(makeZxid(2, 1));
    expect(script.broken).toEqual(['Z11', 'Z9']);
  });

  it('Z17: a server finds another digest than it was sent', () => {
    const script = new EnsembleScript().serve();
    script.trace(2, { kind: 'digest-mismatch', zxid: script.write().zxid, expected: 1n, actual: 2n });
    expect(script.broken).toEqual(['Z17']);
  });

  it('Z17: two trees differ after the same txn', () => {
    const script = serving();
    const txn = script.nextTxn(3);
    script.spread(3, [1, 2], txn);
    script.committed(3, txn.zxid);
    script.apply(3, txn, 7n);
    script.apply(1, txn, 7n);
    expect(script.broken).toEqual([]);
    script.apply(2, txn, 8n);
    expect(script.broken).toEqual(['Z17']);
  });

  it('D7: a voter applies what its own disk does not have', () => {
    const script = serving();
    const txn = script.write(3, [2]);
    script.log(1, txn);
    script.apply(1, txn);
    expect(script.broken).toEqual(['D7']);
  });

  it('D8: a power loss takes away what was durable', () => {
    const script = serving();
    script.write();
    script.crash(2, []);
    expect(script.broken).toEqual(['D8']);
  });

  it('D8: recovery finds what was never written', () => {
    const script = serving();
    script.write();
    const strange = script.nextTxn(3);
    script.propose(3, 1, strange);
    script.crash(2, [...script.logs.get(2)!, strange]);
    expect(script.broken).toEqual(['D8']);
  });

  it('D8 ignores reports of durability while a server recovers', () => {
    const script = serving();
    const txn = script.write();
    const open = script.nextTxn(3);
    script.propose(3, 1, open);
    script.log(1, open);
    script.checker.onStopped(1);
    script.checker.onStarted(1);
    script.checker.onLogDurable(1, open.zxid);
    script.logs.set(1, [txn]);
    script.recover(1);
    expect(script.broken).toEqual([]);
  });

  it('D8 lets a power loss take what was not synced', () => {
    const script = serving();
    const txn = script.write();
    const open = script.nextTxn(3);
    script.propose(3, 1, open);
    script.log(1, open);
    script.crash(1, [txn]);
    expect(script.broken).toEqual([]);
  });

  it('an empty disk is no loss while a quorum of others has everything', () => {
    const script = serving();
    script.write();
    script.checker.onStopped(1);
    script.checker.onWiped(1);
    script.checker.onRecovered(1, { acceptedEpoch: 0, currentEpoch: 0, base: 0, txns: [] });
    expect(script.broken).toEqual([]);
    script.checker.onWiped(2);
    expect(script.broken).toEqual(['Z9']);
  });

  it('D9: a server acknowledges after its disk has failed', () => {
    const script = serving();
    const txn = script.nextTxn(3);
    script.propose(3, 1, txn);
    script.store(1, txn);
    script.checker.onDiskFailed(1);
    script.ack(1, 3, txn.zxid);
    expect(script.broken).toEqual(['D9']);
  });

  it('D10: a truncated txn is still on the disk', () => {
    const script = serving();
    script.write();
    const open = script.nextTxn(3);
    script.propose(3, 1, open);
    script.store(1, open);
    const log = [...script.logs.get(1)!];
    script.truncate(1, makeZxid(1, 1));
    script.crash(1, log);
    expect(script.broken).toEqual(['D10']);
  });

  it('D10: a log is truncated to before a snapshot that stays', () => {
    const script = serving();
    const txn = script.write();
    script.checker.onSnapshotInstalled(1, txn.zxid);
    expect(script.broken).toEqual([]);
    script.truncate(1, 0 as Zxid);
    expect(script.broken).toEqual(['D10']);
  });
});
