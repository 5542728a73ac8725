import { beforeEach, expect, it } from 'vitest';
import type { ByteStream, StreamEvents } from '../base/ports.ts';
import { MemoryNetwork } from '../testing/memory-network.ts';
import { LeaderDial } from './leader-dial.ts';

const FIRST = { host: 'leader', port: 2888 };
const SECOND = { host: 'leaderb', port: 2889 };
const TIMEOUT_MS = 1000;

let network: MemoryNetwork;
let events: string[];

beforeEach(() => {
  network = new MemoryNetwork(1);
  events = [];
});

function dial(...addresses: readonly { host: string; port: number }[]): LeaderDial {
  const made = new LeaderDial(
    { network: network.portOf('learner'), clock: network.clock },
    { addresses, addressTimeoutMs: TIMEOUT_MS },
    {
      onConnected: (stream) => {
        events.push(`connected to ${stream.remote.host}`);
        return SILENT;
      },
      onFailed: (reason) => events.push(`failed: ${reason}`),
    },
  );
  made.start();
  return made;
}

/**
 * A leader that listens at this address.
 *
 * @returns the open streams that it has accepted
 */
function listen(at: { host: string; port: number }): ByteStream[] {
  const streams: ByteStream[] = [];
  network.portOf('leader').listen(at, {
    onListening() {},
    onListenFailed() {},
    onAccepted: (stream) => {
      streams.push(stream);
      return { ...SILENT, onClosed: () => streams.splice(streams.indexOf(stream), 1) };
    },
  });
  advance(null, 1);
  return streams;
}

const SILENT: StreamEvents = { onBytes() {}, onDrain() {}, onClosed() {} };

function advance(dialling: LeaderDial | null, ms: number): void {
  const untilMs = network.nowMs + ms;
  for (;;) {
    const deadlineMs = dialling?.nextDeadlineMs ?? Number.POSITIVE_INFINITY;
    if (Math.min(deadlineMs, network.nextEventMs) > untilMs) break;
    if (network.nextEventMs <= deadlineMs) network.step();
    else {
      network.nowMs = Math.max(network.nowMs, deadlineMs);
      dialling!.onTick();
    }
  }
  network.nowMs = untilMs;
}

it('redials a leader that has not opened its port yet, for a short time', () => {
  const dialling = dial(FIRST);
  advance(dialling, 300);
  expect(events).toEqual([]);
  const streams = listen(FIRST);
  advance(dialling, 200);
  expect(events).toEqual(['connected to leader']);
  expect(streams).toHaveLength(1);
  expect(dialling.nextDeadlineMs).toBe(Number.POSITIVE_INFINITY);
});

it('stops redialling a refusing leader once its election connection has broken, but waits for a silent one', () => {
  const refused = dial(FIRST);
  advance(refused, 50);
  refused.onLeaderLost();
  expect(events).toEqual(['failed: it refuses, and its election connection has broken, too']);
  const early = dial(FIRST);
  early.onLeaderLost();
  expect(events).toHaveLength(1);
  advance(early, 20);
  expect(events[1]).toBe('failed: refused');
  const streams = listen(FIRST);
  const alive = dial(FIRST);
  alive.onLeaderLost();
  advance(alive, 10);
  expect(events[2]).toBe('connected to leader');
  expect(streams).toHaveLength(1);
});

it('fails once if the leader never opens its port', () => {
  const dialling = dial(FIRST, SECOND);
  advance(dialling, 5000);
  expect(events).toEqual(['failed: refused']);
});

it('takes the first of several addresses that answers, and cancels the others', () => {
  const streams = [listen(FIRST), listen(SECOND)];
  const dialling = dial(FIRST, SECOND);
  advance(dialling, 5000);
  expect(events).toHaveLength(1);
  expect(streams.map(({ length }) => length).sort()).toEqual([0, 1]);
});

it.each([
  [FIRST, 'leaderb'],
  [SECOND, 'leader'],
])('is not delayed by an unresponsive address', ({ host }, other) => {
  listen(FIRST);
  listen(SECOND);
  network.blackHoles.add(`learner>${host}`);
  const dialling = dial(FIRST, SECOND);
  advance(dialling, 50);
  expect(events).toEqual([`connected to ${other}`]);
});

it('fails when none of several addresses answers in time, but has no timeout for a single one', () => {
  for (const host of ['leader', 'leaderb']) network.blackHoles.add(`learner>${host}`);
  const several = dial(FIRST, SECOND);
  advance(several, TIMEOUT_MS);
  expect(events).toEqual(['failed: no answer within 1000 ms']);
  const single = dial(FIRST);
  advance(single, 60_000);
  expect(events).toHaveLength(1);
});

it('has no events once it is cancelled', () => {
  const streams = listen(FIRST);
  const dialling = dial(FIRST);
  network.step();
  dialling.cancel();
  advance(dialling, 5000);
  expect(events).toEqual([]);
  expect(streams).toEqual([]);
});
