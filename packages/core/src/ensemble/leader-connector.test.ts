import { PacketType, type Zxid } from '@meerkat/protocol';
import { beforeEach, expect, it } from 'vitest';
import { bytesOf } from '../../../protocol/src/testing/byte-list.ts';
import type { ByteStream, StreamEvents } from '../base/ports.ts';
import { MemoryNetwork, TestRandom } from '../testing/memory-network.ts';
import { LeaderConnector } from './leader-connector.ts';
import type { RoleHost } from './role-host.ts';

const LEADER = { host: 'leader', port: 2888 };
const FOLLOWER = { host: 'follower', port: 2190 };
const ENSEMBLE = { addressTimeoutMs: 1000, initLimit: 10 };
/** A QuorumPacket: int type, long zxid, no data, no authinfo. */
const UPTODATE = bytesOf((list) => list.int(12).long(0).int(-1).int(-1));
const SILENT: StreamEvents = { onBytes() {}, onDrain() {}, onClosed() {} };

let network: MemoryNetwork;
let events: string[];
/** What the learner does with a packet. */
let onPacket: (taken: LeaderConnector) => void;

beforeEach(() => {
  network = new MemoryNetwork(1);
  events = [];
  onPacket = () => {};
});

/** Server 3's connection to the leader, server 1; server 2 may feed observers. */
function way(isObserver: boolean, observerMasterPort = FOLLOWER.port): LeaderConnector {
  const host = {
    ports: { clock: network.clock, random: new TestRandom(1), network: network.portOf('learner') },
    options: { tickTimeMs: 200 },
    trace: { emit: ({ message }: { message: string }) => events.push(`warns: ${message}`) },
    fieldBytesMax: 1000,
    turn: { onOutput() {}, defer() {} },
    servings: {},
  };
  const members = {
    quorumEndpointsOf: () => [LEADER],
    observerMasters: () => [{ serverId: 2, at: FOLLOWER }],
  };
  const made: LeaderConnector = new LeaderConnector(
    host as unknown as RoleHost,
    { ...ENSEMBLE, observerMasterPort } as never,
    () => members as never,
    1,
    isObserver,
    {
      onConnected: () => events.push(`connected to server ${made.master}`),
      onPacket: () => {
        events.push('a packet');
        onPacket(made);
      },
      onProgress: () => events.push('progress'),
      onSnapshot: () => events.push('a snapshot'),
      onLinkClosed: () => events.push('closed'),
      onUnreachable: (reason) => events.push(reason),
    },
  );
  made.start();
  return made;
}

function listen(at: { host: string; port: number }, accepted: StreamEvents = SILENT): ByteStream[] {
  const streams: ByteStream[] = [];
  network.portOf(at.host).listen(at, {
    onListening() {},
    onListenFailed() {},
    onAccepted: (stream) => {
      streams.push(stream);
      return accepted;
    },
  });
  return streams;
}

function advance(taken: LeaderConnector, ms: number): void {
  const untilMs = network.nowMs + ms;
  while (Math.min(taken.nextDeadlineMs, network.nextEventMs) <= untilMs) {
    if (network.nextEventMs <= taken.nextDeadlineMs) network.step();
    else {
      network.nowMs = Math.max(network.nowMs, taken.nextDeadlineMs);
      taken.onTick();
    }
  }
  network.nowMs = untilMs;
}

it('connects an observer to a follower that feeds observers', () => {
  listen(FOLLOWER);
  listen(LEADER);
  advance(way(true), 2000);
  expect(events).toEqual(['connected to server 2']);
});

it('connects an observer to the leader if no follower feeds observers, with a warning', () => {
  listen(LEADER);
  advance(way(true), 2000);
  expect(events).toEqual([
    'warns: no follower takes observers at port 2190 (refused): this observer connects to the leader',
    'connected to server 1',
  ]);
});

it('connects an observer to the leader if followers do not feed observers', () => {
  listen(FOLLOWER);
  listen(LEADER);
  advance(way(true, 0), 2000);
  expect(events).toEqual(['connected to server 1']);
});

it('ends once when the leader does not answer', () => {
  advance(way(false), 5000);
  expect(events).toEqual(['server 1 cannot be reached as the leader: refused']);
});

it.each([false, true])('has no events once it is closed; connected before: %s', (isConnected) => {
  const streams = listen(LEADER);
  const taken = way(false);
  if (isConnected) advance(taken, 100);
  const before = [...events];
  taken.close();
  streams[0]?.write(new Uint8Array([0, 0, 0, 4, 0, 0, 0, 0]));
  streams[0]?.destroy();
  advance(taken, 5000);
  expect(events).toEqual(before);
});

it('has no events once it is closed by a packet, not even for what arrived together with it', () => {
  const streams = listen(LEADER);
  const taken = way(false);
  advance(taken, 100);
  onPacket = () => taken.close();
  for (let i = 0; i < 3; i++) streams[0]!.write(UPTODATE);
  advance(taken, 5000);
  expect(events).toEqual(['connected to server 1', 'a packet']);
});

it('reports progress after what has arrived', () => {
  const streams = listen(LEADER);
  const taken = way(false);
  advance(taken, 100);
  streams[0]!.write(UPTODATE);
  advance(taken, 5000);
  expect(events.filter((event) => event !== 'progress')).toEqual(['connected to server 1', 'a packet']);
  expect(events.slice(-2)).toEqual(['a packet', 'progress']);
});

it('does not redial a leader that refuses once its election connection has broken', () => {
  const taken = way(false);
  advance(taken, 50);
  expect(events).toEqual([]);
  taken.onLeaderLost();
  expect(events).toEqual([
    'server 1 cannot be reached as the leader: it refuses, and its election connection has broken, too',
  ]);
  advance(taken, 5000);
  expect(events).toHaveLength(1);
});

it('keeps its connection to the leader when the election connection breaks', () => {
  const streams = listen(LEADER);
  const taken = way(false);
  advance(taken, 100);
  taken.onLeaderLost();
  advance(taken, 5000);
  expect(events).toEqual(['connected to server 1']);
  expect(streams).toHaveLength(1);
});

it('still dials the followers that feed observers when the election connection to the leader breaks', () => {
  const taken = way(true);
  advance(taken, 50);
  taken.onLeaderLost();
  listen(FOLLOWER);
  advance(taken, 200);
  expect(events).toEqual(['connected to server 2']);
});

it('does not redial once it is closed', () => {
  const taken = way(false);
  advance(taken, 50);
  taken.close();
  const { length } = network.dials;
  advance(taken, 5000);
  expect(events).toEqual([]);
  expect(network.dials).toHaveLength(length);
});

it('sends what it was given before it closes its connection', () => {
  const received: number[] = [];
  const onBytes = (chunk: Uint8Array): void => void received.push(...chunk);
  const streams = listen(LEADER, { ...SILENT, onBytes, onClosed: () => events.push('the leader sees it close') });
  const taken = way(false);
  // Dropped: it is not connected yet.
  taken.send({ type: PacketType.ack, zxid: 1 as Zxid });
  advance(taken, 100);
  taken.send({ type: PacketType.ack, zxid: 2 as Zxid });
  taken.close();
  advance(taken, 5000);
  expect(streams).toHaveLength(1);
  expect(Uint8Array.from(received)).toEqual(bytesOf((list) => list.int(3).long(2).int(-1).int(-1)));
  expect(events).toEqual(['connected to server 1', 'the leader sees it close']);
});
