import { type LearnerPacket, makeZxid, OpCode, PacketType } from '@meerkat/protocol';
import { beforeEach, describe, expect, it } from 'vitest';
import { bytesOf } from '../../../protocol/src/testing/byte-list.ts';
import { DEFAULT_CORE_OPTIONS, DEFAULT_ENSEMBLE_OPTIONS } from '../base/options.ts';
import type { ByteStream, TraceEvent } from '../base/ports.ts';
import { Turn } from '../base/turn.ts';
import { makeMembership } from '../testing/linked-servers.ts';
import { MemoryNetwork } from '../testing/memory-network.ts';
import { LearnerParty } from '../testing/serving-parties.ts';
import { FollowedHistory } from '../zab/followed-history.ts';
import { MembershipKeeper } from './membership-keeper.ts';
import { ObserverFeeding } from './observer-feeding.ts';
import type { RoleHost } from './role-host.ts';

/** Server 1 leads, server 2 is the follower, and the others are observers. */
const MEMBERSHIP = makeMembership([1, 2, 3, 4], [3, 4]);
const EPOCH = 1;
const PORT = 2191;
const SESSION = 7;

let network: MemoryNetwork;
let turn: Turn;
let feeding: ObserverFeeding;
let history: FollowedHistory;
let party: LearnerParty;
/** What the follower sends to the leader. */
let asked: LearnerPacket[];
let traced: TraceEvent[];

beforeEach(() => {
  network = new MemoryNetwork(1);
  turn = new Turn(network.clock);
  asked = [];
  traced = [];
  const trace = { emit: (event: TraceEvent) => void traced.push(event) };
  const host = {
    ports: { clock: network.clock, network: network.portOf('host2') },
    options: { ...DEFAULT_CORE_OPTIONS, serverId: 2 },
    trace,
    turn,
    fieldBytesMax: 1 << 20,
  };
  party = new LearnerParty(2);
  history = new FollowedHistory(makeZxid(EPOCH, 0), 500);
  history.beginEpoch(EPOCH);
  feeding = new ObserverFeeding({
    host: host as unknown as RoleHost,
    ensemble: { ...DEFAULT_ENSEMBLE_OPTIONS, membership: MEMBERSHIP, observerMasterPort: PORT },
    memberships: new MembershipKeeper({
      serverId: 2,
      membership: MEMBERSHIP,
      isReconfigEnabled: false,
      store: null,
      trace,
      wallMs: () => 0,
    }),
    history,
    serving: party.serving,
    ask: (packet) => void asked.push(packet),
  });
  feeding.start();
  settle();
});

/** Everything in flight arrives; each arrival is a turn of the follower. */
function settle(): void {
  do {
    feeding.onTurnEnd();
    turn.runDeferred();
    turn.flushLinks();
    turn.end();
  } while (network.step());
}

/** The other end of a connection to the follower: an observer, or a stranger while it has sent nothing. */
class Observer {
  isClosed = false;
  #stream: ByteStream | null = null;
  #received: number[] = [];

  constructor(host: string) {
    const gone = (): void => {
      this.isClosed = true;
    };
    network.portOf(host).connect(
      { host: 'host2', port: PORT },
      {
        onConnected: (stream) => {
          this.#stream = stream;
          return { onBytes: (chunk) => void this.#received.push(...chunk), onDrain() {}, onClosed: gone };
        },
        onConnectFailed: gone,
      },
    );
    settle();
  }

  /** One that has synchronized, and serves clients. */
  static serving(serverId: number): Observer {
    const observer = new Observer(`host${serverId}`);
    const info = bytesOf((list) => list.long(serverId).int(0x10000).long(0));
    observer.send(PacketType.observerInfo, makeZxid(EPOCH, 0), info);
    observer.send(PacketType.ackEpoch, makeZxid(EPOCH, 0), [0, 0, 0, EPOCH]);
    observer.send(PacketType.ack, makeZxid(EPOCH, 0), null);
    observer.takeReceived();
    return observer;
  }

  /** REVALIDATE: int session timeout follows the session id. */
  revalidate(sessionId: number): void {
    this.send(
      PacketType.revalidate,
      0,
      bytesOf((list) => list.long(sessionId).int(4000)),
    );
  }

  /** REQUEST: session id, cxid, op code, and the record, which nothing here reads. */
  request(op: number, cxid: number): void {
    this.send(
      PacketType.request,
      -1,
      bytesOf((list) => list.long(SESSION).int(cxid).int(op)),
    );
  }

  /** QuorumPacket: int type, long zxid, buffer data, no authinfo. */
  send(type: number, zxid: number, data: ArrayLike<number> | null): void {
    this.#stream!.write(bytesOf((list) => list.int(type).long(zxid).buffer(data).int(-1)));
    settle();
  }

  takeReceived(): Uint8Array {
    return Uint8Array.from(this.#received.splice(0));
  }
}

/** The answer to REVALIDATE. */
function revalidated(sessionId: number, isValid: boolean): Uint8Array {
  const data = bytesOf((list) => list.long(sessionId).boolean(isValid));
  return bytesOf((list) => list.int(PacketType.revalidate).long(-1).buffer(data).int(-1));
}

const SYNC = bytesOf((list) => list.int(PacketType.sync).long(0).int(-1).int(-1));
const NOTHING = new Uint8Array(0);

describe('the answer of the leader about a session', () => {
  it.each([true, false])('is relayed to the observer that has asked, and only to it; valid: %s', (isValid) => {
    const [one, other] = [Observer.serving(3), Observer.serving(4)];
    one.revalidate(SESSION);
    expect(asked).toMatchObject([{ type: PacketType.revalidate, sessionId: 7n, timeoutMs: 4000 }]);
    const isForObserver = feeding.onRevalidated(7n, isValid);
    settle();
    expect(isForObserver).toBe(true);
    expect(one.takeReceived()).toEqual(revalidated(7, isValid));
    expect(other.takeReceived()).toEqual(NOTHING);
  });

  it('is for a client of the follower itself if that has asked, in the order of the questions', () => {
    const observer = Observer.serving(3);
    feeding.onOwnRevalidate(7n);
    observer.revalidate(SESSION);
    expect(feeding.onRevalidated(7n, true)).toBe(false);
    settle();
    expect(observer.takeReceived()).toEqual(NOTHING);
    expect(feeding.onRevalidated(7n, true)).toBe(true);
    settle();
    expect(observer.takeReceived()).toEqual(revalidated(7, true));
  });
});

describe('the answer of the leader that a session is valid', () => {
  it.each([
    ['reaches the observer behind everything that was proposed before it', true],
    ['becomes a refusal if the session has ended meanwhile', false],
  ])('%s', (_title, isAlive) => {
    const created = makeZxid(EPOCH, 1);
    const proposed = makeZxid(EPOCH, 2);
    if (isAlive) {
      const header = { sessionId: BigInt(SESSION), cxid: 0, zxid: created, time: 1 };
      party.propose({ header, txn: { type: OpCode.createSession, timeoutMs: 4000 }, digest: null });
      party.commit(created);
    }
    history.push({ zxid: created, payload: new Uint8Array(0) });
    history.commit(created);
    const observer = Observer.serving(3);
    observer.revalidate(SESSION);
    history.push({ zxid: proposed, payload: new Uint8Array([1, 2, 3]) });
    expect(feeding.onRevalidated(BigInt(SESSION), true)).toBe(true);
    settle();
    expect(observer.takeReceived()).toEqual(NOTHING);
    history.commit(proposed);
    feeding.onCommitted(created);
    settle();
    const inform = bytesOf((list) => list.int(PacketType.inform).long(proposed).buffer([1, 2, 3]).int(-1));
    expect(observer.takeReceived()).toEqual(bytesOf((list) => list.raw(inform).raw(revalidated(SESSION, isAlive))));
  });
});

describe('another observer that connects to the follower', () => {
  it('is accepted, without effect on others', () => {
    const observers = [Observer.serving(3), new Observer('stranger'), Observer.serving(4)];
    expect(observers.map(({ isClosed }) => isClosed)).toEqual([false, false, false]);
    expect(feeding.learners().map(({ serverId }) => serverId)).toEqual([3, 4]);
    expect(traced.filter(({ kind }) => kind === 'learner-closed')).toEqual([]);
  });

  it('replaces one that has not identified itself while descriptors run short', () => {
    const [observer, stranger] = [Observer.serving(3), new Observer('stranger')];
    network.crowded.add(`host2:${PORT}`);
    const late = Observer.serving(4);
    expect([observer, stranger, late].map(({ isClosed }) => isClosed)).toEqual([false, true, false]);
    expect(feeding.learners().map(({ serverId }) => serverId)).toEqual([3, 4]);
  });

  it('is refused while descriptors run short and all others are members', () => {
    const observer = Observer.serving(3);
    network.crowded.add(`host2:${PORT}`);
    const late = new Observer('host4');
    expect([observer, late].map(({ isClosed }) => isClosed)).toEqual([false, true]);
    expect(feeding.learners().map(({ serverId }) => serverId)).toEqual([3]);
  });
});

describe('a request of an observer', () => {
  it('is forwarded to the leader while its client is connected there, not once the client has moved', () => {
    const [before, after] = [Observer.serving(3), Observer.serving(4)];
    const sent = (): number[] => asked.splice(0).map((packet) => ('cxid' in packet ? packet.cxid : 0));
    before.request(OpCode.createSession, 1);
    before.request(OpCode.delete, 2);
    expect(sent()).toEqual([1, 2]);
    after.revalidate(SESSION);
    expect(asked.splice(0)).toMatchObject([{ type: PacketType.revalidate }]);
    before.request(OpCode.delete, 3);
    after.request(OpCode.delete, 4);
    expect(sent()).toEqual([4]);
  });

  it('for a sync is answered once the leader has answered it, in the order of all syncs', () => {
    const [one, other] = [Observer.serving(3), Observer.serving(4)];
    one.request(OpCode.sync, 1);
    feeding.onOwnSync();
    other.request(OpCode.sync, 2);
    // The follower itself sends its own.
    expect(asked).toMatchObject([{ cxid: 1 }, { cxid: 2 }]);
    const answers = [1, 2, 3].map((count) => {
      const own = feeding.onSynced(count);
      settle();
      return [own, one.takeReceived(), other.takeReceived()];
    });
    expect(answers).toEqual([
      [0, SYNC, NOTHING],
      [1, NOTHING, NOTHING],
      [1, NOTHING, SYNC],
    ]);
  });
});
