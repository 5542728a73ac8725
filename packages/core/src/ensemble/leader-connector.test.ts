import { beforeEach, expect, it } from 'vitest';
import type { ByteStream, StreamEvents } from '../base/ports.ts';
import { MemoryNetwork, TestRandom } from '../testing/memory-network.ts';
import { LeaderConnector } from './leader-connector.ts';
import type { RoleHost } from './role-host.ts';

const LEADER = { host: 'leader', port: 2888 };
const FOLLOWER = { host: 'follower', port: 2190 };
const ENSEMBLE = { addressTimeoutMs: 1000, observerMasterPort: 2190, initLimit: 10 };
const SILENT: StreamEvents = { onBytes() {}, onDrain() {}, onClosed() {} };

let network: MemoryNetwork;
let events: string[];

beforeEach(() => {
  network = new MemoryNetwork(1);
  events = [];
});

/** Server 3's connection to the leader, server 1; server 2 may feed observers. */
function way(isObserver: boolean): LeaderConnector {
  const host = {
    ports: { clock: network.clock, random: new TestRandom(1), network: network.portOf('learner') },
    options: { tickTimeMs: 200 },
    trace: { emit: ({ message }: { message: string }) => events.push(`warns: ${message}`) },
    fieldBytesMax: 1000,
    turn: { willEnd() {} },
    servings: {},
  };
  const members = {
    quorumEndpointsOf: () => [LEADER],
    observerMasters: () => [{ serverId: 2, at: FOLLOWER }],
  };
  const made: LeaderConnector = new LeaderConnector(
    host as unknown as RoleHost,
    ENSEMBLE as never,
    () => members as never,
    1,
    isObserver,
    {
      onConnected: () => events.push(`connected to server ${made.master}`),
      onPacket: () => events.push('a packet'),
      onProgress: () => events.push('progress'),
      onSnapshot: () => events.push('a snapshot'),
      onLinkClosed: () => events.push('closed'),
      onUnreachable: (reason) => events.push(reason),
    },
  );
  made.start();
  return made;
}

function listen(at: { host: string; port: number }): ByteStream[] {
  const streams: ByteStream[] = [];
  network.portOf(at.host).listen(at, {
    onListening() {},
    onListenFailed() {},
    onAccepted: (stream) => {
      streams.push(stream);
      return SILENT;
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
