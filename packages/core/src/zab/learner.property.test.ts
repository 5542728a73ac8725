/**
 * A learner whose disk completes requests in any order and arbitrarily late, and whose link breaks at any point. A
 * scripted leader sends a history of several epochs by DIFF, TRUNC or SNAP, followed by live traffic.
 *
 * Every ACK is checked against what is durable at that moment (D1, D2 of the protocol's invariants). What is reported
 * as committed must ascend, be durable, and be committed by the leader. In the end clients are served and everything is
 * applied.
 */
import { counterOf, epochOf, type LeaderPacket, makeZxid, PacketType, type Zxid } from '@meerkat/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Asked, commit, inform, leaderInfo, newLeader, proposal, TestLearner } from '../testing/test-learner.ts';

/** The last epoch is the leader's own. */
const EPOCH = 4;

const story = fc.record({
  kind: fc.constantFrom('follower', 'follower', 'observer', 'silent-observer'),
  mode: fc.constantFrom('diff', 'trunc', 'snap'),
  /** Number of txns of the epochs 1, 2, 3 and 4 in the leader's history. */
  counts: fc.tuple(fc.integer({ min: 1, max: 4 }), fc.nat(3), fc.nat(3), fc.nat(8)),
  /**
   * How many of them the learner has, how many stray txns it has behind them, and how many are sent before NEWLEADER.
   */
  has: fc.nat(100),
  strays: fc.integer({ min: 1, max: 3 }),
  beforeNewLeader: fc.nat(100),
  beforeUpToDate: fc.nat(100),
  /** How late a COMMIT follows its PROPOSAL, in packets. */
  lag: fc.nat(4),
  repeats: fc.nat(3),
  hasAccepted: fc.boolean(),
  /** Whose turn it is: the leader's or one of the disk's. */
  turns: fc.array(fc.record({ who: fc.constantFrom('leader', 'leader', 'log', 'epoch', 'change'), count: fc.nat(3) }), {
    maxLength: 120,
    size: 'max',
  }),
  /** The turn at which the link breaks and the power fails; beyond the turns, never. */
  cutAt: fc.nat(200),
});

type Story = typeof story extends fc.Arbitrary<infer T> ? T : never;

test('only durable txns are acknowledged or applied, in whatever order the disk completes', () => {
  let served = 0;
  let cut = 0;
  fc.assert(
    fc.property(story, (drawn) => {
      const play = new Play(drawn);
      const isCut = play.run();
      if (isCut) cut++;
      else served++;
    }),
    { numRuns: 1500 },
  );
  // Both outcomes are covered.
  expect(Math.min(served, cut)).toBeGreaterThan(100);
});

class Play {
  readonly #drawn: Story;
  readonly #one: TestLearner;
  /** The leader's history. */
  readonly #history: readonly Zxid[];
  readonly #base: Zxid;
  readonly #packets: readonly LeaderPacket[];
  readonly #acked: Zxid[] = [];
  #epochAcks = 0;
  #committed: Zxid;
  /** Up to where the leader has committed, in packets that were delivered or wait in the link. */
  #said: Zxid;
  #sentUpTo: Zxid;
  /** Last zxid sent before NEWLEADER. */
  #beforeNewLeader: Zxid;
  #hasStopped = false;
  #isServing = false;

  constructor(drawn: Story) {
    this.#drawn = drawn;
    this.#history = drawn.counts.flatMap((count, i) => Array.from({ length: count }, (_, k) => makeZxid(i + 1, k + 1)));
    const has = Math.min(drawn.has % (this.#history.length + 1), drawn.counts[0] + drawn.counts[1]);
    const log = this.#history.slice(0, has);
    const end = log.at(-1) ?? makeZxid(0, 0);
    const strays =
      drawn.mode === 'trunc' && has > 0
        ? Array.from({ length: drawn.strays }, (_, i) => makeZxid(epochOf(end), counterOf(end) + 10 + i))
        : [];
    // A snapshot holds at least what the learner has; it may be of any later txn.
    const snapped = drawn.mode === 'snap' ? Math.min(this.#history.length, has + drawn.repeats) : has;
    this.#base = this.#history[snapped - 1] ?? makeZxid(0, 0);
    this.#committed = this.#base;
    this.#said = this.#base;
    this.#sentUpTo = this.#base;
    this.#beforeNewLeader = this.#base;
    this.#one = new TestLearner({
      kind: drawn.kind === 'follower' ? 'follower' : 'observer',
      logsInforms: drawn.kind !== 'silent-observer',
      log: [...log, ...strays],
      currentEpoch: epochOf(end),
      acceptedEpoch: drawn.hasAccepted ? EPOCH : epochOf(end),
    });
    this.#one.onAsked = (asked) => this.#check(asked);
    this.#packets = this.#script(snapped);
  }

  /** @returns true when the power failed before the end */
  run(): boolean {
    const { turns, cutAt } = this.#drawn;
    const one = this.#one;
    one.learner.onConnected();
    let next = 0;
    const hearNext = () => {
      const packet = this.#packets[next];
      // The leader waits for the learner's answers where the protocol requires it.
      if (packet === undefined || !this.#maySend(packet)) return;
      next++;
      this.#note(packet);
      one.receive(packet);
      if (packet.type === PacketType.snap) one.snapshotArrives();
    };
    for (const [i, { who, count }] of turns.entries()) {
      if (i === cutAt) return this.#cut();
      if (who === 'leader') for (let k = 0; k <= count; k++) hearNext();
      else if (who === 'log' && one.disk.unsynced.length > 0) one.disk.sync(one.learner, count + 1);
      else if (who === 'epoch' && one.disk.epochWrites.length > 0) one.disk.finishEpoch(one.learner);
      else if (who === 'change' && one.disk.change !== null) one.finishChange();
    }
    for (let idle = 0; idle < 2; idle = next < this.#packets.length ? 0 : idle + 1) {
      one.diskDoesAll();
      hearNext();
    }
    this.#checkEnd();
    return false;
  }

  #script(snapped: number): readonly LeaderPacket[] {
    const { mode, kind, lag, beforeNewLeader, beforeUpToDate, repeats } = this.#drawn;
    const rest = this.#history.slice(snapped);
    const old = rest.filter((zxid) => epochOf(zxid) < EPOCH).length;
    const newLeaderAt = old + (beforeNewLeader % (rest.length - old + 1));
    const upToDateAt = newLeaderAt + (beforeUpToDate % (rest.length - newLeaderAt + 1));
    const packets: LeaderPacket[] = [leaderInfo(EPOCH)];
    if (mode === 'snap') packets.push({ type: PacketType.snap, zxid: this.#base });
    else if (mode === 'trunc') packets.push({ type: PacketType.trunc, zxid: this.#base });
    else packets.push({ type: PacketType.diff, zxid: this.#history.at(-1)! });
    // What the snapshot holds may be sent again.
    const again = mode === 'snap' ? this.#history.slice(Math.max(0, snapped - repeats), snapped) : [];
    for (const zxid of again) packets.push(proposal(zxid), commit(zxid));
    const uncommitted: Zxid[] = [];
    for (let i = 0; i <= rest.length; i++) {
      if (i === newLeaderAt) packets.push(newLeader(EPOCH));
      if (i === upToDateAt) packets.push({ type: PacketType.upToDate });
      const zxid = rest[i];
      if (zxid === undefined) break;
      if (kind !== 'follower' && i >= newLeaderAt) {
        // To an observer, everything that is committed has been proposed as INFORM.
        for (const earlier of uncommitted.splice(0)) packets.push(commit(earlier));
        packets.push(inform(zxid));
        continue;
      }
      packets.push(proposal(zxid));
      uncommitted.push(zxid);
      while (uncommitted.length > lag) packets.push(commit(uncommitted.shift()!));
    }
    for (const zxid of uncommitted) packets.push(commit(zxid));
    packets.push({ type: PacketType.ping, zxid: this.#history.at(-1)! });
    return packets;
  }

  #maySend({ type }: LeaderPacket): boolean {
    const { phase } = this.#one.learner;
    if (type === PacketType.diff || type === PacketType.trunc || type === PacketType.snap) return phase === 'choosing';
    if (type === PacketType.upToDate) return this.#epochAcks > 0;
    return true;
  }

  #note(packet: LeaderPacket): void {
    if (packet.type === PacketType.newLeader) this.#beforeNewLeader = this.#sentUpTo;
    if (packet.type === PacketType.commit) this.#said = Math.max(this.#said, packet.zxid) as Zxid;
    if (packet.type !== PacketType.proposal && packet.type !== PacketType.inform) return;
    const { zxid } = packet.entry.header;
    this.#sentUpTo = Math.max(this.#sentUpTo, zxid) as Zxid;
    if (packet.type === PacketType.inform) this.#said = zxid;
  }

  /** Checks that the log durably holds the leader's history up to here. */
  #expectDurable(upTo: Zxid): void {
    const { disk } = this.#one;
    if (disk.base > upTo) expect(disk.base).toBe(this.#base);
    const wanted = this.#history.filter((zxid) => zxid > disk.base && zxid <= upTo);
    expect(disk.log.filter((zxid) => zxid <= upTo)).toEqual(wanted);
  }

  #check(asked: Asked): void {
    expect(this.#hasStopped).toBe(false);
    const { disk } = this.#one;
    const logs = this.#drawn.kind !== 'silent-observer';
    switch (asked.kind) {
      case 'stop':
        this.#hasStopped = true;
        return;
      case 'committed':
        expect(asked.zxid).toBeGreaterThan(this.#committed);
        expect(asked.zxid).toBeLessThanOrEqual(this.#said);
        if (logs) this.#expectDurable(asked.zxid);
        this.#committed = asked.zxid;
        return;
      case 'serve':
        expect(this.#epochAcks).toBe(2);
        this.#isServing = true;
        return;
      case 'pinged':
        expect(this.#epochAcks).toBeGreaterThan(0);
        return;
      case 'send':
        break;
      default:
        return;
    }
    const { packet } = asked;
    if (packet.type === PacketType.ackEpoch) {
      expect(disk.acceptedEpoch).toBe(EPOCH);
      expect(packet.zxid).toBe(disk.lastZxid);
    } else if (packet.type === PacketType.ack && counterOf(packet.zxid) === 0) {
      this.#epochAcks++;
      expect(packet.zxid).toBe(makeZxid(EPOCH, 0));
      expect(disk.currentEpoch).toBe(EPOCH);
      if (logs) this.#expectDurable(this.#beforeNewLeader);
    } else if (packet.type === PacketType.ack) {
      expect(this.#drawn.kind).toBe('follower');
      expect(this.#epochAcks).toBeGreaterThan(0);
      expect(packet.zxid).toBeGreaterThan(this.#acked.at(-1) ?? -1);
      this.#expectDurable(packet.zxid);
      this.#acked.push(packet.zxid);
    }
  }

  #cut(): boolean {
    const one = this.#one;
    one.learner.onLinkClosed('closed by peer');
    expect(this.#hasStopped).toBe(true);
    // The disk holds the old history or a prefix of the leader's, and every promise that was sent.
    one.restart();
    const { base, log } = one.disk;
    const wanted = this.#history.filter((zxid) => zxid > base);
    const isOld = base < this.#base && log.length > 0 && !this.#history.includes(log.at(-1)!);
    if (!isOld) expect(wanted.slice(0, log.length)).toEqual(log);
    for (const zxid of this.#acked) expect(zxid <= base || log.includes(zxid)).toBe(true);
    if (this.#epochAcks > 0) expect(one.disk.currentEpoch).toBe(EPOCH);
    return true;
  }

  #checkEnd(): void {
    const one = this.#one;
    const end = this.#history.at(-1)!;
    expect(this.#hasStopped).toBe(false);
    expect(this.#isServing).toBe(true);
    expect(one.learner.phase).toBe('broadcast');
    expect(one.learner.lastProposed).toBe(Math.max(end, this.#base));
    expect(one.learner.lastCommitted).toBe(Math.max(end, this.#base));
    if (this.#drawn.kind !== 'silent-observer') this.#expectDurable(end);
    expect(one.takeAsked().map(({ kind }) => kind)).toContain('pinged');
  }
}
