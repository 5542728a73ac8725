import { beforeEach, describe, expect, it } from 'vitest';
import type { ByteStream, StreamEvents, TraceEvent } from '../base/ports.ts';
import { MemoryNetwork } from '../testing/memory-network.ts';
import { QuorumPort } from './quorum-port.ts';

const AT = { host: 'leader', port: 2888 };

let network: MemoryNetwork;
let port: QuorumPort;
let changes: number;
let traced: TraceEvent[];

beforeEach(() => {
  network = new MemoryNetwork(1);
  changes = 0;
  traced = [];
  port = makePort([AT]);
});

function makePort(addresses: readonly { host: string; port: number }[]): QuorumPort {
  const ports = {
    network: network.portOf('leader'),
    clock: network.clock,
    trace: { emit: (event: TraceEvent) => traced.push(event) },
  };
  return new QuorumPort(ports, addresses, () => changes++);
}

/** Records what a leader receives from its learners. */
class Leader {
  readonly events: string[] = [];
  readonly take = (stream: ByteStream): StreamEvents => {
    this.events.push(`takes ${stream.remote.host}`);
    return {
      onBytes: (chunk) => this.events.push(`${stream.remote.host} says ${chunk.join(' ')}`),
      onDrain() {},
      onClosed: () => this.events.push(`${stream.remote.host} is gone`),
    };
  };
}

/** Connects, writes at once, and records how the connection ends. */
class Learner {
  stream: ByteStream | null = null;
  readonly closed: string[] = [];

  constructor(host: string, ...words: readonly number[][]) {
    network.portOf(host).connect(AT, {
      onConnected: (stream) => {
        this.stream = stream;
        for (const word of words) stream.write(Uint8Array.from(word));
        return { onBytes() {}, onDrain() {}, onClosed: (reason) => this.closed.push(reason) };
      },
      onConnectFailed: (reason) => this.closed.push(reason),
    });
  }
}

function advance(ms: number): void {
  const untilMs = network.nowMs + ms;
  for (;;) {
    const atMs = Math.min(port.nextDeadlineMs, network.nextEventMs);
    if (atMs > untilMs) break;
    if (network.nextEventMs <= port.nextDeadlineMs) network.step();
    else {
      network.nowMs = Math.max(network.nowMs, port.nextDeadlineMs);
      port.onTick();
    }
  }
  network.nowMs = untilMs;
}

describe('a learner that connects before its leader leads', () => {
  it('waits, and is passed to the leader with everything it has sent', () => {
    port.start();
    advance(10);
    const learner = new Learner('early', [1, 2], [3]);
    advance(100);
    const leader = new Leader();
    port.open(leader.take);
    advance(10);
    expect(leader.events[0]).toBe('takes early');
    expect(leader.events.slice(1).join(' ').replaceAll('early says ', '')).toBe('1 2 3');
    expect(learner.closed).toEqual([]);
    learner.stream!.destroy();
    advance(100);
    expect(leader.events.at(-1)).toBe('early is gone');
  });

  it('is closed when this server follows, as is one that connects later', () => {
    port.start();
    advance(10);
    const early = new Learner('early', [1]);
    advance(100);
    port.close();
    advance(10);
    expect(early.closed).toHaveLength(1);
    const late = new Learner('late', [1]);
    advance(10);
    expect(late.closed).toHaveLength(1);
  });

  it('is closed after half a second, so that it looks for a leader again', () => {
    port.start();
    advance(10);
    const learner = new Learner('early', [1]);
    advance(400);
    expect(learner.closed).toEqual([]);
    advance(200);
    expect(learner.closed).toHaveLength(1);
  });

  it('finds room among strangers: when too many wait, the oldest are closed', () => {
    port.start();
    advance(10);
    const strangers = Array.from({ length: 200 }, (_, i) => new Learner(`stranger${i}`));
    advance(50);
    const learner = new Learner('early', [1]);
    advance(50);
    expect(strangers.filter(({ closed }) => closed.length === 0)).toHaveLength(63);
    const leader = new Leader();
    port.open(leader.take);
    advance(10);
    expect(leader.events).toContain('early says 1');
    expect(learner.closed).toEqual([]);
  });

  it('replaces a waiting one when there is no more room', () => {
    port.start();
    network.crowded.add('leader:2888');
    advance(10);
    const [first, second] = [new Learner('first'), new Learner('second')];
    advance(50);
    expect([first, second].map(({ closed }) => closed.length).sort()).toEqual([0, 1]);
  });

  it('is refused once the server has stopped', () => {
    port.start();
    advance(10);
    const early = new Learner('early');
    advance(10);
    port.stop();
    advance(10);
    const late = new Learner('late');
    advance(10);
    expect([early.closed.length, late.closed]).toEqual([1, ['refused']]);
  });
});

describe('a port that cannot be listened on', () => {
  it('is reported once, with the consequence, and retried until it can', () => {
    network.unlistenable.add('leader:2888');
    port.start();
    expect([port.isSettled, port.isOpen]).toEqual([false, false]);
    advance(10);
    expect([port.isSettled, port.isOpen]).toEqual([true, false]);
    advance(10_000);
    expect(traced).toEqual([
      {
        kind: 'warning',
        message:
          'cannot listen for followers at leader:2888: EADDRINUSE. Retrying; until then this server votes and follows, but does not stand for leader, and hands over if it leads',
      },
    ]);
    network.unlistenable.clear();
    advance(300);
    expect(port.isOpen).toBe(true);
    expect(traced.at(-1)).toEqual({ kind: 'notice', message: 'listens for followers at leader:2888' });
    expect(changes).toBeGreaterThan(1);
  });

  it('does not matter while the server can listen at another address', () => {
    network.unlistenable.add('leader:2888');
    port = makePort([AT, { host: 'leader', port: 2889 }]);
    port.start();
    advance(10);
    expect([port.isSettled, port.isOpen]).toEqual([true, true]);
  });

  it('is not reported for a server without an address to lead from', () => {
    port = makePort([]);
    port.start();
    expect([port.isSettled, port.isOpen]).toEqual([true, false]);
  });
});
