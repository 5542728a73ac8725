import { beforeEach, expect, it } from 'vitest';
import type { ByteStream, Network, StreamEvents } from '../base/ports.ts';
import { MemoryNetwork, TestRandom } from '../testing/memory-network.ts';
import { MasterDial } from './master-dial.ts';

const PORT = 2191;
const TIMEOUT_MS = 1000;
const PATIENCE_MS = 5000;
const SILENT: StreamEvents = { onBytes() {}, onDrain() {}, onClosed() {} };

let network: MemoryNetwork;
let events: string[];

beforeEach(() => {
  network = new MemoryNetwork(1);
  events = [];
});

/** An observer that dials these followers: server 2 is at host2. */
function dial(serverIds: readonly number[], seed = 1): MasterDial {
  const made = new MasterDial(
    { network: network.portOf('observer'), clock: network.clock, random: new TestRandom(seed) },
    {
      masters: serverIds.map((serverId) => ({ serverId, at: { host: `host${serverId}`, port: PORT } })),
      addressTimeoutMs: TIMEOUT_MS,
      patienceMs: PATIENCE_MS,
    },
    {
      onConnected: (stream, serverId) => {
        events.push(`connected to server ${serverId} at ${stream.remote.host}`);
        return SILENT;
      },
      onFailed: (reason) => events.push(`failed: ${reason}`),
    },
  );
  made.start();
  return made;
}

/** @returns the open streams that the follower has accepted */
function listen(serverId: number): ByteStream[] {
  const streams: ByteStream[] = [];
  const host = `host${serverId}`;
  network.portOf(host).listen(
    { host, port: PORT },
    {
      onListening() {},
      onListenFailed() {},
      onAccepted: (stream) => {
        streams.push(stream);
        return { ...SILENT, onClosed: () => streams.splice(streams.indexOf(stream), 1) };
      },
    },
  );
  network.settle();
  return streams;
}

function advance(dialling: MasterDial, ms: number): void {
  const untilMs = network.nowMs + ms;
  while (Math.min(dialling.nextDeadlineMs, network.nextEventMs) <= untilMs) {
    if (network.nextEventMs <= dialling.nextDeadlineMs) network.step();
    else {
      network.nowMs = Math.max(network.nowMs, dialling.nextDeadlineMs);
      dialling.onTick();
      expect(dialling.nextDeadlineMs).toBeGreaterThan(network.nowMs);
    }
  }
  network.nowMs = untilMs;
}

it('goes on to the next follower when one refuses', () => {
  listen(3);
  const dialling = dial([2, 3]);
  advance(dialling, 100);
  expect(events).toEqual(['connected to server 3 at host3']);
  expect(dialling.nextDeadlineMs).toBe(Number.POSITIVE_INFINITY);
});

it('goes on to the next follower as soon as one has not answered within the timeout, and not before', () => {
  for (const id of [2, 3]) network.blackHoles.add(`observer>host${id}`);
  const dialling = dial([2, 3]);
  const [first] = network.dials;
  network.settle();
  const timeoutMs = dialling.nextDeadlineMs;
  network.nowMs = timeoutMs - 1;
  dialling.onTick();
  expect(network.dials).toEqual([first]);
  network.nowMs = timeoutMs;
  dialling.onTick();
  expect([...network.dials].sort()).toEqual([`observer>host2:${PORT}`, `observer>host3:${PORT}`]);
});

it('cancels a dial that is not answered in time, so that only one follower is connected', () => {
  const cancelled: string[] = [];
  const connect: Network['connect'] = ({ host }) => ({ cancel: () => void cancelled.push(host) });
  const ports = {
    network: { ...network.portOf('observer'), connect },
    clock: network.clock,
    random: new TestRandom(1),
  };
  const masters = [{ serverId: 2, at: { host: 'host2', port: PORT } }];
  const dialling = new MasterDial(
    ports,
    { masters, addressTimeoutMs: TIMEOUT_MS, patienceMs: PATIENCE_MS },
    { onConnected: () => SILENT, onFailed() {} },
  );
  dialling.start();
  advance(dialling, TIMEOUT_MS - 1);
  expect(cancelled).toEqual([]);
  advance(dialling, 1);
  expect(cancelled).toEqual(['host2']);
});

it('dials one at a time', () => {
  for (const id of [2, 3, 4]) listen(id);
  advance(dial([2, 3, 4]), 100);
  expect(network.dials).toHaveLength(1);
  expect(events).toHaveLength(1);
});

it('dials all again after a pause: a follower opens its port once it has synchronized', () => {
  const dialling = dial([2, 3]);
  advance(dialling, 500);
  expect(network.dials.length).toBeGreaterThan(2);
  expect(network.dials.length).toBeLessThanOrEqual(2 * 6);
  listen(2);
  advance(dialling, 200);
  expect(events).toEqual(['connected to server 2 at host2']);
});

it('fails once its patience is over, with the reason of the last attempt', () => {
  const refused = dial([2]);
  advance(refused, PATIENCE_MS - 200);
  expect(events).toEqual([]);
  advance(refused, 400);
  expect(events).toEqual(['failed: refused']);
  advance(refused, 10_000);
  expect(events).toHaveLength(1);
  network.blackHoles.add('observer>host2');
  advance(dial([2]), PATIENCE_MS + TIMEOUT_MS);
  expect(events.slice(1)).toEqual([`failed: no answer within ${TIMEOUT_MS} ms`]);
});

it('fails at once when there is no follower', () => {
  dial([]);
  expect(events).toEqual(['failed: there is none']);
});

it('spreads observers over the followers', () => {
  for (let seed = 1; seed <= 20; seed++) dial([2, 3, 4], seed);
  expect(new Set(network.dials).size).toBe(3);
});

it('has no events once it is cancelled', () => {
  const streams = listen(2);
  const dialling = dial([2]);
  network.step();
  dialling.cancel();
  advance(dialling, 10_000);
  expect(events).toEqual([]);
  expect(streams).toEqual([]);
});
