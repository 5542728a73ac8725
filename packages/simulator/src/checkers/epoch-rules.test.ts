import { makeZxid, PacketType, QUORUM_PROTOCOL_VERSION, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { EnsembleScript } from './testing/ensemble-script.ts';

function elected(): EnsembleScript {
  const script = new EnsembleScript();
  script.elect(3);
  return script;
}

describe('the rules of epochs', () => {
  it('E1: currentEpoch goes back on a disk', () => {
    const script = new EnsembleScript().serve();
    script.epoch(1, 'currentEpoch', 0);
    expect(script.broken).toEqual(['E1']);
  });

  it('E1: acceptedEpoch goes back on a disk', () => {
    const script = new EnsembleScript();
    script.epoch(1, 'acceptedEpoch', 2);
    script.epoch(1, 'acceptedEpoch', 1);
    expect(script.broken).toEqual(['E1']);
  });

  it('E1: a power loss takes away a promise that was durable', () => {
    const script = new EnsembleScript().serve();
    script.recover(1, { acceptedEpoch: 0, currentEpoch: 0 });
    expect(script.broken).toEqual(['E1']);
  });

  it('E2: a server is in an epoch that it has not promised', () => {
    const script = new EnsembleScript();
    script.epoch(1, 'currentEpoch', 1);
    expect(script.broken).toEqual(['E2']);
  });

  it('E3: a log ends in an epoch that the server is not in', () => {
    const script = new EnsembleScript();
    script.checker.onRecovered(1, {
      acceptedEpoch: 0,
      currentEpoch: 0,
      base: makeZxid(1, 5),
      txns: [],
    });
    expect(script.broken).toEqual(['E3']);
  });

  it('E4: two servers lead one epoch', () => {
    const script = new EnsembleScript().serve();
    script.role(2, 'looking');
    for (const voter of [1, 3]) script.vote(voter, 2, { leader: 2, electionEpoch: 2 });
    script.vote(2, 1, { leader: 2, electionEpoch: 2 });
    script.role(2, 'leading', 2);
    script.epoch(2, 'currentEpoch', 1);
    expect(script.broken).toEqual(['E4']);
  });

  it('E4: a server leads the epoch again that it has led before', () => {
    const script = new EnsembleScript().serve();
    script.role(3, 'looking');
    script.role(3, 'leading', 3);
    script.epoch(3, 'currentEpoch', 1);
    expect(script.broken).toEqual(['E4']);
  });

  it('E5: a leader announces an epoch before it has promised it', () => {
    const script = elected();
    script.greet(1, 3);
    const zxid = makeZxid(1, 0);
    const protocolVersion = QUORUM_PROTOCOL_VERSION;
    script.down(3, 1, { type: PacketType.leaderInfo, zxid, protocolVersion, announces: 0 });
    expect(script.broken).toEqual(['E5']);
  });

  it('E5: a learner promises an epoch before its disk has it', () => {
    const script = elected();
    script.greet(1, 3);
    script.epoch(3, 'acceptedEpoch', 1);
    script.promise(1, 3, 1, { forgetsPromise: true });
    expect(script.broken).toEqual(['E5']);
  });

  it('E6: a leader chooses an epoch that a member of its quorum has promised already', () => {
    const script = elected();
    script.greet(1, 3, { acceptedEpoch: 1 });
    script.epoch(3, 'acceptedEpoch', 1);
    script.promise(1, 3, 1);
    expect(script.broken).toEqual(['E6']);
  });

  it('E7: a leader counts a voter that is ahead of it', () => {
    const script = elected();
    script.greet(1, 3);
    script.epoch(3, 'acceptedEpoch', 2);
    script.promise(1, 3, 2, { ackCurrentEpoch: 1, ackZxid: makeZxid(1, 7) });
    script.epoch(3, 'currentEpoch', 2);
    script.down(3, 1, { type: PacketType.diff, zxid: 0 as Zxid });
    expect(script.broken).toEqual(['E7']);
  });

  it('E7 allows a voter that is ahead and was refused, when the others are a quorum', () => {
    const script = elected();
    for (const id of [1, 2]) script.greet(id, 3);
    script.epoch(3, 'acceptedEpoch', 2);
    script.promise(1, 3, 2, { ackCurrentEpoch: 1, ackZxid: makeZxid(1, 7) });
    script.promise(2, 3, 2);
    script.epoch(3, 'currentEpoch', 2);
    script.down(3, 2, { type: PacketType.diff, zxid: 0 as Zxid });
    expect(script.broken).toEqual([]);
  });

  it('E8: a leader synchronizes although only itself has promised', () => {
    const script = elected();
    script.greet(1, 3);
    script.epoch(3, 'acceptedEpoch', 1);
    script.promise(1, 3, 1, { ackCurrentEpoch: -1 });
    script.epoch(3, 'currentEpoch', 1);
    script.down(3, 1, { type: PacketType.diff, zxid: 0 as Zxid });
    expect(script.broken).toEqual(['E8']);
  });

  it('E8: an observer counts for the quorum of an epoch', () => {
    const script = elected();
    script.role(4, 'observing', 3);
    script.discover(3, 1, [1, 4]);
    script.synchronize(4, 3, 1);
    script.establish(3, 1);
    expect(script.broken).toEqual(['E8']);
  });

  it('D3: a leader counts itself before its own epoch is durable', () => {
    const script = elected();
    script.discover(3, 1, [1]);
    script.synchronize(1, 3, 1);
    script.establish(3, 1);
    expect(script.broken).toEqual([]);

    const hasty = elected();
    hasty.greet(1, 3);
    hasty.epoch(3, 'acceptedEpoch', 1);
    hasty.promise(1, 3, 1);
    hasty.down(3, 1, { type: PacketType.diff, zxid: 0 as Zxid });
    hasty.down(3, 1, { type: PacketType.newLeader, zxid: makeZxid(1, 0), configText: '' });
    hasty.epoch(1, 'currentEpoch', 1);
    hasty.ack(1, 3, makeZxid(1, 0));
    hasty.establish(3, 1);
    expect(hasty.broken).toEqual(['D3']);
  });
});
