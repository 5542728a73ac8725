import { PacketType, ZXID_ZERO } from '@meerkat/protocol';
import { beforeEach, describe, expect, it } from 'vitest';
import { bytesOf } from '../../../protocol/src/testing/byte-list.ts';
import { onDisk } from '../base/durable.ts';
import { DEFAULT_CORE_OPTIONS, DEFAULT_ENSEMBLE_OPTIONS } from '../base/options.ts';
import type { StreamEvents, TraceEvent } from '../base/ports.ts';
import { Turn } from '../base/turn.ts';
import { makeDatabase } from '../testing/link-pair.ts';
import { makeMembership } from '../testing/linked-servers.ts';
import { StubStream } from '../testing/stub-stream.ts';
import { Leading } from './leading.ts';
import { MembershipKeeper } from './membership-keeper.ts';
import type { RoleHost } from './role-host.ts';

const MEMBERSHIP = makeMembership([1, 2, 3]);

let traced: TraceEvent[];
let leading: Leading;

/** Server 1 has been elected, and waits for its followers. */
beforeEach(() => {
  traced = [];
  const clock = { monotonicMs: () => 1000, wallMs: () => 1000 };
  const trace = { emit: (event: TraceEvent) => void traced.push(event) };
  const host = {
    ports: { clock },
    options: { ...DEFAULT_CORE_OPTIONS, serverId: 1 },
    trace,
    turn: new Turn(clock),
    fieldBytesMax: 1 << 20,
    storage: { reportTo() {}, writeEpoch() {} },
  };
  const keeper = new MembershipKeeper({
    serverId: 1,
    membership: MEMBERSHIP,
    isReconfigEnabled: false,
    store: null,
    trace,
    wallMs: () => 0,
  });
  const history = { lastZxid: onDisk(ZXID_ZERO), currentEpoch: onDisk(0), acceptedEpoch: onDisk(0), tail: [] };
  leading = new Leading(
    host as unknown as RoleHost,
    { ...DEFAULT_ENSEMBLE_OPTIONS, membership: MEMBERSHIP },
    keeper,
    { peerVotes: { historyEpochOf: () => null }, needSnapshot: new Set() },
    { database: makeDatabase(), history },
    { onEstablished() {}, onEnded() {} },
  );
  leading.start();
});

/** A connection to the quorum port. @param isCrowding the process runs short of descriptors */
function connect(isCrowding = false): { stream: StubStream; events: StreamEvents } {
  const stream = Object.assign(new StubStream(), { isCrowding });
  return { stream, events: leading.accept(stream) };
}

/** FOLLOWERINFO: its accepted epoch as a zxid; server id, protocol version and version of the membership. */
function followerInfo(serverId: number): Uint8Array {
  const info = bytesOf((list) => list.long(serverId).int(0x10000).long(0));
  return bytesOf((list) => list.int(PacketType.followerInfo).long(0).buffer(info).int(-1));
}

function isClosed({ stream }: { stream: StubStream }): boolean {
  return stream.calls.includes('destroy');
}

const closings = (): TraceEvent[] => traced.filter(({ kind }) => kind === 'learner-closed');

describe('another learner that connects to a leader', () => {
  it('is accepted, without effect on others', () => {
    const learners = [connect(), connect()];
    learners[0]!.events.onBytes(followerInfo(2));
    learners.push(connect());
    expect(learners.map(isClosed)).toEqual([false, false, false]);
    expect(closings()).toEqual([]);
    expect(leading.learners().map(({ serverId }) => serverId)).toEqual([2]);
  });

  it('replaces one that has not identified itself while descriptors run short', () => {
    const [member, stranger] = [connect(), connect()];
    member.events.onBytes(followerInfo(2));
    const late = connect(true);
    expect([member, stranger, late].map(isClosed)).toEqual([false, true, false]);
    expect(closings()).toMatchObject([{ serverId: null, reason: expect.stringContaining('not identified itself') }]);
    late.events.onBytes(followerInfo(3));
    expect(leading.learners().map(({ serverId }) => serverId)).toEqual([2, 3]);
  });

  it('is refused while descriptors run short and all others are members', () => {
    const member = connect();
    member.events.onBytes(followerInfo(2));
    const late = connect(true);
    expect([member, late].map(isClosed)).toEqual([false, true]);
    late.events.onBytes(followerInfo(3));
    expect(leading.learners().map(({ serverId }) => serverId)).toEqual([2]);
  });
});
