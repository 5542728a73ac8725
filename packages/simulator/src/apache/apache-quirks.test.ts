/** Known quirks of a 3.8.0 server, each shown against two scripted servers. */
import { makeProposal, makeZxid, OPEN_ACL, OpCode, PacketType, ZXID_ZERO } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { helloOf, NEW_LEADER, Script } from '../testing/apache-script.ts';

const { ack, ackEpoch, commit, diff, newLeader, ping, proposal, sync, trunc, upToDate } = PacketType;

function proposalOf(counter: number) {
  const header = { sessionId: 0n, cxid: 0, zxid: makeZxid(1, counter), time: 1 };
  const txn = { type: OpCode.create, path: `/n${counter}`, data: null, acl: OPEN_ACL, isEphemeral: false };
  return makeProposal(proposal, { header, txn: { ...txn, parentCversion: counter }, digest: null });
}

function commitOf(counter: number) {
  return { type: commit, zxid: makeZxid(1, counter) };
}

describe('the hello', () => {
  test.each([
    { what: 'is taken as a whole', sizes: [100], warnings: 0 },
    { what: 'is taken when only its header comes first', sizes: [20, 100], warnings: 0 },
    { what: 'is refused when its address comes in pieces', sizes: [22, 100], warnings: 1 },
  ])('$what', ({ sizes, warnings }) => {
    const script = new Script();
    script.peer.start();
    let isClosed = false;
    const hello = helloOf(3);
    const end = script.network.connect('zk3', 'zk1', 3888, {
      onBytes: () => {},
      onDrain: () => {},
      onFailed: () => {},
      onClosed: () => {
        isClosed = true;
      },
      onOpen: () => {
        let at = 0;
        for (const size of sizes) {
          end.write(hello.slice(at, at + size));
          at += size;
        }
      },
    });
    script.advance(100);
    expect(script.peer.warnings).toHaveLength(warnings);
    expect(isClosed).toBe(warnings > 0);
  });
});

describe('a follower of 3.8.0', () => {
  test('may acknowledge a proposal before NEWLEADER, and has adopted the epoch before its history is safe', () => {
    const script = new Script({ newLeaderPauseMaxMs: 1000, logSyncMaxMs: 0 });
    const end = script.follow();
    end.lead({ type: diff, zxid: makeZxid(1, 1) }, proposalOf(1), commitOf(1), NEW_LEADER);
    script.until(() => end.acks.length === 2);
    expect(end.acks).toEqual([makeZxid(1, 1), makeZxid(1, 0)]);
  });

  test('acknowledges NEWLEADER without waiting for its log, which a loss of power shows', () => {
    const script = new Script({ newLeaderPauseMaxMs: 0, logSyncMinMs: 50, logSyncMaxMs: 50 });
    const end = script.follow();
    end.lead({ type: diff, zxid: makeZxid(1, 1) }, proposalOf(1), commitOf(1), NEW_LEADER);
    end.until(ack);
    expect(end.acks).toEqual([makeZxid(1, 0)]);
    script.peer.powerOff();
    expect(script.peer.disk.currentEpoch).toBe(1);
    expect(script.peer.disk.log).toHaveLength(0);
  });

  test('ends its role when a COMMIT between NEWLEADER and UPTODATE finds its proposal gone', () => {
    const script = new Script();
    const end = script.follow();
    end.lead({ type: diff, zxid: ZXID_ZERO }, proposalOf(1), NEW_LEADER, commitOf(1));
    script.until(() => end.isClosed);
    expect(script.peer.complaints).toEqual([expect.stringContaining('between NEWLEADER and UPTODATE')]);
    expect(script.peer.isServing).toBe(false);
    expect(script.peer.exited).toBeNull();
  });

  test('applies that COMMIT when it comes behind UPTODATE', () => {
    const script = new Script();
    const end = script.follow();
    end.lead({ type: diff, zxid: ZXID_ZERO }, proposalOf(1), NEW_LEADER, { type: upToDate }, commitOf(1));
    script.until(() => script.peer.applied.length === 1);
    expect(script.peer.database.znodes.has('/n1')).toBe(true);
    expect(script.peer.complaints).toEqual([]);
  });

  test('exits with 12 when a COMMIT is not that of its oldest proposal', () => {
    const script = new Script();
    const end = script.serve();
    end.lead(proposalOf(1), proposalOf(2), commitOf(2));
    script.until(() => script.peer.exited !== null);
    expect(script.peer.exited).toBe(12);
    expect(script.peer.isRunning).toBe(false);
    expect(script.peer.complaints).toEqual([expect.stringContaining('exits with 12')]);
    expect(script.peer.complaintsAbout(3)).toEqual(script.peer.complaints);
    expect(script.peer.complaintsAbout(1, 2)).toEqual([]);
  });

  test('ignores a COMMIT while it waits for none', () => {
    const script = new Script();
    const end = script.serve();
    end.lead(proposalOf(1), commitOf(1), commitOf(1));
    script.advance(100);
    expect(script.peer.isServing).toBe(true);
    expect(script.peer.complaints).toEqual([expect.stringContaining('without a proposal')]);
  });

  test('exits with 13 when the history begins with anything but DIFF, TRUNC or SNAP', () => {
    const script = new Script();
    script.follow().lead(proposalOf(1));
    script.until(() => script.peer.exited !== null);
    expect(script.peer.exited).toBe(13);
  });

  test('exits with 13 when it is to truncate its log where that has nothing', () => {
    const script = new Script();
    script.follow().lead({ type: trunc, zxid: makeZxid(1, 1) });
    script.until(() => script.peer.exited !== null);
    expect(script.peer.exited).toBe(13);
  });

  test('answers no ping before it serves, and then with the active sessions', () => {
    const script = new Script();
    const end = script.follow();
    end.lead({ type: ping, zxid: ZXID_ZERO }, { type: diff, zxid: ZXID_ZERO });
    script.advance(100);
    // A ping instead of DIFF is as unexpected as any other packet.
    expect(script.peer.exited).toBe(13);

    const other = new Script();
    const late = other.follow();
    late.lead({ type: diff, zxid: ZXID_ZERO }, { type: ping, zxid: ZXID_ZERO }, NEW_LEADER, {
      type: ping,
      zxid: ZXID_ZERO,
    });
    late.until(ack);
    other.advance(100);
    expect(late.types).not.toContain(ping);
    late.lead({ type: upToDate });
    other.until(() => other.peer.isServing);
    const { sessionId } = other.peer.createSession(20_000);
    late.lead({ type: ping, zxid: makeZxid(1, 0) });
    late.until(ping);
    expect(late.received.at(-1)).toEqual({
      type: ping,
      zxid: makeZxid(1, 0),
      sessions: [{ sessionId, timeoutMs: 20_000 }],
    });
  });

  test('waits initLimit for its history, and syncLimit for later packets', () => {
    const script = new Script();
    const end = script.follow();
    const followedMs = script.timeline.nowMs;
    script.until(() => end.isClosed);
    expect(script.timeline.nowMs - followedMs).toBeCloseTo(20_000, -2);

    const other = new Script();
    const served = other.serve();
    const servedMs = other.timeline.nowMs;
    other.until(() => served.isClosed);
    expect(other.timeline.nowMs - servedMs).toBeCloseTo(10_000, -2);
  });

  test('tells a leader that it has met before not to count it again', () => {
    const script = new Script();
    const end = script.follow();
    expect(end.received.at(-1)).toMatchObject({ type: ackEpoch, currentEpoch: 0 });
    script.peer.kill();
    script.network.closeHost('zk3');
    const again = script.follow();
    expect(again.received.at(-1)).toMatchObject({ type: ackEpoch, currentEpoch: -1 });
  });

  test('waits forever for a request whose txn has another cxid', () => {
    const script = new Script();
    const end = script.serve();
    const request = script.peer.create(7n, '/n1', new Uint8Array(0));
    const { entry } = proposalOf(1);
    const header = { ...entry.header, sessionId: 7n, cxid: request.cxid + 1 };
    end.lead(makeProposal(proposal, { ...entry, header }), commitOf(1));
    script.advance(1000);
    expect(request.outcome).toBeNull();
    expect(script.peer.warnings).toEqual([expect.stringContaining("another server's")]);
  });

  test('never answers a request whose COMMIT comes before the SYNC of an older sync', () => {
    const script = new Script();
    const end = script.serve();
    const older = script.peer.sync(7n);
    const write = script.peer.create(8n, '/n1', new Uint8Array(0));
    const { entry } = proposalOf(1);
    const header = { ...entry.header, sessionId: 8n, cxid: write.cxid };
    end.lead(makeProposal(proposal, { ...entry, header }), commitOf(1), { type: sync });
    script.advance(1000);
    expect(older.outcome).not.toBeNull();
    expect(write.outcome).toBeNull();
    expect(script.peer.complaints).toEqual([expect.stringContaining('no longer answers writes')]);
  });
});

describe('a leader of 3.8.0', () => {
  test('does not count the ACK of a proposal in the place of that of NEWLEADER, nor the right one behind it', () => {
    const script = new Script();
    script.startLeader();
    const end = script.join(2);
    end.until(newLeader);
    end.learn({ type: ack, zxid: makeZxid(1, 1) }, { type: ack, zxid: makeZxid(1, 0) });
    script.advance(19_000);
    expect(end.types).not.toContain(upToDate);
    expect(script.peer.isServing).toBe(false);
    script.until(() => script.peer.leader === null);
    expect(script.peer.complaints).toEqual([expect.stringContaining('in the place of the ACK of NEWLEADER')]);
  });

  test.each([
    { what: 'an answer to a ping', packet: { type: ping, zxid: ZXID_ZERO, sessions: [] } },
    { what: 'a revalidation', packet: { type: PacketType.revalidate, sessionId: 1n, timeoutMs: 1 } },
  ])('drops a learner that sends $what before the ACK of NEWLEADER', ({ packet }) => {
    const script = new Script();
    script.startLeader();
    const end = script.join(2);
    end.until(newLeader);
    end.learn(packet, { type: ack, zxid: makeZxid(1, 0) });
    script.until(() => end.isClosed);
    expect(script.peer.complaints).toEqual([expect.stringContaining('between ACKEPOCH and the ACK of NEWLEADER')]);
  });

  test('counts an ACK for exactly its zxid', () => {
    const script = new Script();
    script.startLeader();
    const end = script.joinAndServe(2);
    const txn = { type: OpCode.error, error: -1 } as const;
    const first = script.peer.propose(txn)!;
    const second = script.peer.propose(txn)!;
    script.advance(100);
    end.learn({ type: ack, zxid: second });
    script.advance(100);
    expect(end.commits).toEqual([]);
    expect(script.peer.complaints).toEqual([expect.stringContaining('for 3.8.0 it never has')]);
    // The second one is not checked again, although it has a quorum.
    end.learn({ type: ack, zxid: first });
    script.advance(100);
    expect(end.commits).toEqual([first]);
    end.learn({ type: ack, zxid: second });
    script.advance(100);
    expect(end.commits).toEqual([first, second]);
  });

  test('answers a sync when everything that was proposed before it is committed', () => {
    const script = new Script();
    script.startLeader();
    const end = script.joinAndServe(2);
    const request = { type: PacketType.request, sessionId: 5n, cxid: 1, op: OpCode.sync, body: new Uint8Array(0) };
    end.learn({ ...request, authInfo: [] });
    end.until(sync);
    const zxid = script.peer.propose({ type: OpCode.error, error: -1 })!;
    end.learn({ ...request, authInfo: [] });
    script.advance(100);
    expect(end.types.filter((type) => type === sync)).toHaveLength(1);
    end.learn({ type: ack, zxid });
    script.advance(100);
    expect(end.types.slice(-2)).toEqual([commit, sync]);
  });

  test('closes a follower that answers pings and acknowledges nothing', () => {
    const script = new Script();
    script.startLeader();
    const end = script.joinAndServe(2);
    const other = script.joinAndServe(3, makeZxid(1, 0));
    script.peer.propose({ type: OpCode.error, error: -1 });
    for (let answered = 0, i = 0; i < 20; i++) {
      script.advance(1000);
      const pings = end.received.filter((packet) => packet.type === ping);
      for (; answered < pings.length; answered++) end.learn({ type: ping, zxid: ZXID_ZERO, sessions: [] });
      other.learn({ type: ack, zxid: makeZxid(1, 1) });
    }
    expect(end.isClosed).toBe(true);
    expect(other.isClosed).toBe(false);
    expect(script.peer.warnings).toContainEqual(expect.stringContaining('not acknowledged within syncLimit'));
  });

  test('ends its role when too few followers are active', () => {
    const script = new Script();
    script.startLeader();
    script.joinAndServe(2);
    script.until(() => script.peer.leader === null);
    expect(script.timeline.nowMs).toBeLessThan(16_000);
    expect(script.peer.isServing).toBe(false);
  });
});
