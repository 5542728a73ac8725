import { type LearnerPacket, makeZxid, PacketType, QUORUM_PROTOCOL_VERSION, type Zxid } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { FollowedHistory } from './followed-history.ts';
import { ObserverMaster, type ObserverMasterEffects } from './observer-master.ts';

const EPOCH = 5;
const zxid = (counter: number, epoch = EPOCH): Zxid => makeZxid(epoch, counter);
const PAYLOAD = new Uint8Array([1, 2, 3]);

/** A follower of server 1 in epoch 5 that records its effects. */
class Follower implements ObserverMasterEffects {
  readonly said: string[] = [];
  readonly history = new FollowedHistory(zxid(3, 4), 500);
  readonly master: ObserverMaster;
  nowMs = 0;

  constructor() {
    this.history.beginEpoch(EPOCH);
    this.master = new ObserverMaster({
      options: {
        serverId: 2,
        tickTimeMs: 100,
        initLimit: 10,
        syncLimit: 5,
        epochTxnsMax: 1000,
        commitLogCount: 500,
        txnBytesMax: 1000,
        leaseMs: 0,
      },
      clock: { monotonicMs: () => this.nowMs, wallMs: () => this.nowMs },
      membership: { version: zxid(0, 0), committedText: 'version=0', newestText: 'version=0', keepsLeader: true },
      history: this.history,
      effects: this,
    });
  }

  propose(counter: number): void {
    this.history.push({ zxid: zxid(counter), payload: PAYLOAD });
  }

  commit(counter: number): void {
    const before = this.history.committed;
    this.history.commit(zxid(counter));
    this.master.onCommitted(before);
    this.master.onTurnEnd();
    this.history.trim();
  }

  receive(link: number, packet: LearnerPacket): void {
    this.master.onLearnerPacket(link, packet);
  }

  /** Connects an observer with a history up to `lastZxid`, which accepts what it is sent. */
  connect(link: number, lastZxid: Zxid, keepsLog = true): void {
    this.master.onLearnerConnected(link);
    this.receive(link, {
      type: PacketType.observerInfo,
      zxid: zxid(0, 4),
      serverId: 10 + link,
      protocolVersion: QUORUM_PROTOCOL_VERSION,
      configVersion: null,
      announces: keepsLog ? 2 : 0,
    } as LearnerPacket);
    this.receive(link, { type: PacketType.ackEpoch, zxid: lastZxid, currentEpoch: 4 } as LearnerPacket);
  }

  acknowledge(link: number): void {
    this.receive(link, { type: PacketType.ack, zxid: zxid(0) } as LearnerPacket);
  }

  /** The effects since the last call. */
  take(): string[] {
    return this.said.splice(0);
  }

  send(link: number, packet: { type: number | null; zxid?: number }): void {
    const [name] = Object.entries(PacketType).find(([, type]) => type === packet.type) ?? ['?'];
    const where = packet.zxid === undefined ? '' : ` ${format(packet.zxid)}`;
    this.said.push(`${link} ${name}${where}`);
  }
  sendProposal(link: number, at: Zxid): void {
    this.said.push(`${link} proposal ${format(at)}`);
  }
  sendInform(link: number, at: Zxid): void {
    this.said.push(`${link} inform ${format(at)}`);
  }
  sendSnapshot(link: number, at: Zxid): void {
    this.said.push(`${link} snapshot ${format(at)}`);
  }
  readHistory(link: number, from: Zxid): void {
    this.said.push(`${link} reads from ${format(from)}`);
  }
  synchronizing(): void {}
  synchronized(): void {}
  closeLearner(link: number, reason: string): void {
    this.said.push(`${link} closed: ${reason}`);
  }
  requested(link: number): void {
    this.said.push(`request of ${link}`);
  }
  revalidated(link: number): void {
    this.said.push(`revalidation of ${link}`);
  }
  touched(): void {}
}

function format(at: number): string {
  return `${Math.floor(at / 2 ** 32)},${at % 2 ** 32}`;
}

describe('a follower that feeds observers', () => {
  test('synchronizes an observer as a leader does, and sends it committed txns', () => {
    const follower = new Follower();
    follower.propose(1);
    follower.propose(2);
    follower.commit(1);
    follower.connect(1, zxid(3, 4));
    expect(follower.take()).toEqual([
      '1 leaderInfo 5,0',
      '1 diff 5,1',
      '1 proposal 5,1',
      '1 commit 5,1',
      '1 newLeader 5,0',
    ]);
    follower.commit(2);
    expect(follower.take()).toEqual(['1 inform 5,2']);
    follower.acknowledge(1);
    expect(follower.take()).toEqual(['1 upToDate']);
    // An observer is not sent proposals.
    follower.propose(3);
    expect(follower.take()).toEqual([]);
    follower.commit(3);
    expect(follower.take()).toEqual(['1 inform 5,3']);
  });

  test('makes an observer that is ahead in the epoch wait, and does not truncate its history', () => {
    const follower = new Follower();
    follower.propose(1);
    follower.propose(2);
    follower.commit(1);
    follower.connect(1, zxid(2));
    expect(follower.take()).toEqual(['1 leaderInfo 5,0']);
    follower.commit(2);
    expect(follower.take()).toEqual(['1 diff 5,2', '1 newLeader 5,0']);
  });

  test('reads from its log the txns that it does not keep in memory', () => {
    const follower = new Follower();
    follower.connect(1, zxid(1, 4));
    expect(follower.take()).toEqual(['1 leaderInfo 5,0', '1 reads from 4,1']);
  });

  test('gives an observer initLimit ticks from each step on, also while it reads for it from its log', () => {
    const follower = new Follower();
    const entry = (counter: number) => ({ zxid: zxid(counter, 4), payload: PAYLOAD });
    follower.connect(1, zxid(1, 4));
    const steps = [
      () => follower.master.onHistoryRead(1, [entry(1), entry(2)]),
      () => follower.master.onLearnerRoom(1),
      () => follower.master.onHistoryRead(1, [entry(2), entry(3)]),
      () => follower.master.onLearnerRoom(1),
    ];
    for (const step of steps) {
      follower.nowMs += 950;
      follower.master.onTick();
      step();
    }
    expect(follower.take().slice(-4)).toEqual([
      '1 reads from 4,2',
      '1 proposal 4,3',
      '1 commit 4,3',
      '1 newLeader 5,0',
    ]);
    follower.nowMs += 1000;
    follower.master.onTick();
    expect(follower.take()).toEqual([]);
    follower.nowMs += 50;
    follower.master.onTick();
    expect(follower.take()).toEqual(['1 closed: learner 11 is silent']);
  });

  test('refuses followers, ACKs of txns, and requests before UPTODATE', () => {
    const follower = new Follower();
    follower.master.onLearnerConnected(1);
    follower.receive(1, { type: PacketType.followerInfo } as LearnerPacket);
    expect(follower.take()).toEqual([expect.stringContaining('1 closed: the first packet of an observer')]);
    follower.connect(2, zxid(3, 4));
    follower.take();
    follower.receive(2, { type: PacketType.request } as LearnerPacket);
    expect(follower.take()).toEqual([expect.stringContaining('2 closed: learner 12 sends REQUEST before')]);
    follower.connect(3, zxid(3, 4));
    follower.acknowledge(3);
    follower.take();
    follower.receive(3, { type: PacketType.ack, zxid: zxid(1) } as LearnerPacket);
    expect(follower.take()).toEqual([expect.stringContaining('3 closed: learner 13 acknowledges')]);
  });

  test('answers syncs in their order, and sends an Apache observer no later txn before', () => {
    const follower = new Follower();
    for (const link of [1, 2]) {
      follower.connect(link, zxid(3, 4), link === 1);
      follower.acknowledge(link);
    }
    follower.take();
    follower.master.awaitSync(1, 1);
    follower.master.awaitSync(2, 3);
    follower.propose(1);
    follower.commit(1);
    expect(follower.take()).toEqual(['1 inform 5,1']);
    follower.master.onSynced(2);
    expect(follower.take()).toEqual(['1 sync']);
    follower.master.onSynced(3);
    expect(follower.take()).toEqual(['2 sync', '2 inform 5,1']);
  });

  test('pings observers, and closes the link of one that does not answer', () => {
    const follower = new Follower();
    follower.connect(1, zxid(3, 4));
    follower.acknowledge(1);
    follower.take();
    for (follower.nowMs = 50; follower.nowMs <= 500; follower.nowMs += 50) follower.master.onTick();
    expect(follower.take()).toEqual(Array.from({ length: 10 }, () => '1 ping 5,0'));
    follower.nowMs = 550;
    follower.master.onTick();
    expect(follower.take()).toEqual(['1 closed: learner 11 is silent']);
  });
});
