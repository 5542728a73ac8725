import { describe, expect, test } from 'vitest';
import type { LinkQuality } from './link-quality.ts';
import { SeededRandom } from './seeded-random.ts';
import { Timeline } from './timeline.ts';
import type { CloseReason, EndEvents, VirtualEnd } from './virtual-end.ts';
import { VirtualNetwork } from './virtual-network.ts';

const SMOOTH: LinkQuality = { delayMinMs: 1, delayMaxMs: 2, splitChance: 0, mergeChance: 0 };

/** Records the events of one side of a stream. */
class Side implements EndEvents {
  readonly chunks: Uint8Array[] = [];
  readonly closed: CloseReason[] = [];
  drains = 0;

  onBytes(chunk: Uint8Array): void {
    this.chunks.push(chunk);
  }
  onDrain(): void {
    this.drains++;
  }
  onClosed(reason: CloseReason): void {
    this.closed.push(reason);
  }
  get bytes(): number[] {
    return this.chunks.flatMap((chunk) => [...chunk]);
  }
}

interface Pair {
  readonly timeline: Timeline;
  readonly network: VirtualNetwork;
  readonly a: VirtualEnd;
  readonly b: VirtualEnd;
  readonly sideA: Side;
  readonly sideB: Side;
  pass(ms: number): void;
}

/** A stream from host `a`, which has connected, to host `b`, which has listened. */
function connectPair(quality: LinkQuality = SMOOTH, seed = 1): Pair {
  const timeline = new Timeline();
  const network = new VirtualNetwork(timeline, new SeededRandom(seed), quality);
  const sideA = new Side();
  const sideB = new Side();
  let b: VirtualEnd | null = null;
  network.listen('b', 7, (end) => {
    b = end;
    end.listen(sideB);
  });
  const a = network.connect('a', 'b', 7, Object.assign(sideA, { onOpen() {}, onFailed() {} }));
  const pass = (ms: number): void => {
    const endMs = timeline.nowMs + ms;
    while (timeline.step(endMs));
  };
  pass(10);
  if (b === null) throw new Error('no connection was accepted');
  return { timeline, network, a, b, sideA, sideB, pass };
}

/** 0, 1, 2, … */
function count(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => i & 0xff);
}

describe('a virtual network', () => {
  test('delivers what a closed end had on its way in a blocked direction once the block ends', () => {
    const { network, a, sideA, sideB, pass } = connectPair();
    network.block('a', 'b');
    a.write(count(5));
    a.end();
    pass(1000);
    expect(sideA.closed).toEqual(['closed here']);
    expect(sideB.chunks).toEqual([]);
    network.unblock('a', 'b');
    pass(1000);
    expect(sideB.bytes).toEqual([0, 1, 2, 3, 4]);
    expect(sideB.closed).toEqual(['closed by peer']);
  });

  test('loses a reset in a block, so that the other end only learns of it when it writes', () => {
    for (let seed = 1; seed < 20; seed++) {
      const { network, a, b, sideB, pass } = connectPair(SMOOTH, seed);
      network.block('a', 'b');
      a.destroy();
      pass(100);
      network.unblock('a', 'b');
      pass(1000);
      if (sideB.closed.length > 0) continue; // Closed gracefully, which a kernel retransmits.
      b.write(count(1));
      pass(100);
      expect(sideB.closed).toEqual(['reset by peer']);
      return;
    }
    expect.unreachable('some seed resets');
  });

  test('swallows what is sent to a host without power, and resets it when the host is back', () => {
    const { network, a, sideA, pass } = connectPair();
    network.dropHost('b');
    a.write(count(3));
    pass(60_000);
    expect(sideA.closed).toEqual([]);
    network.restoreHost('b');
    pass(100);
    expect(sideA.closed).toEqual(['reset by peer']);
  });

  test('leaves an end half-open that never writes to a host that lost its power', () => {
    const { network, sideA, pass } = connectPair();
    network.dropHost('b');
    network.restoreHost('b');
    pass(600_000);
    expect(sideA.closed).toEqual([]);
  });

  test('loses requests for connections in a black hole, and fails after a minute', () => {
    const { timeline, network, a, sideB, pass } = connectPair();
    network.dropConnects('b');
    const events: string[] = [];
    const side = Object.assign(new Side(), {
      onOpen: () => events.push('open'),
      onFailed: (failure: string) => events.push(`${failure} at ${Math.round(timeline.nowMs / 1000)} s`),
    });
    network.connect('a', 'b', 7, side);
    a.write(count(2));
    pass(50_000);
    expect(events).toEqual([]);
    expect(sideB.bytes).toEqual([0, 1]);
    pass(20_000);
    expect(events).toEqual(['unreachable at 59 s']);
  });

  test('connects at the next retransmission after a black hole ends', () => {
    const { network, pass } = connectPair();
    network.dropConnects('b', 7);
    const events: string[] = [];
    network.connect('a', 'b', 7, Object.assign(new Side(), { onOpen: () => events.push('open'), onFailed() {} }));
    pass(500);
    network.takeConnects('b', 7);
    pass(2000);
    expect(events).toEqual(['open']);
  });

  test('blocks one port of a host in both directions and leaves the others alone', () => {
    const { network, a, b, sideA, sideB, pass } = connectPair();
    network.blockPort('b', 7);
    a.write(count(1));
    b.write(count(1));
    pass(1000);
    expect([sideA.bytes, sideB.bytes]).toEqual([[], []]);
    network.unblockPort('b', 7);
    pass(1000);
    expect([sideA.bytes, sideB.bytes]).toEqual([[0], [0]]);
  });

  test('sometimes delivers single bytes, in order', () => {
    const { a, sideB, pass } = connectPair({ ...SMOOTH, dribbleChance: 1 });
    a.write(count(100));
    pass(100);
    expect(sideB.chunks.slice(0, 40).map(({ length }) => length)).toEqual(Array.from({ length: 40 }, () => 1));
    expect(sideB.bytes).toEqual([...count(100)]);
  });

  test('breaks a stream in the middle of a message: a prefix arrives, then both ends are reset', () => {
    const cuts = new Set<number>();
    for (let seed = 1; seed <= 30; seed++) {
      const { network, a, sideA, sideB, pass } = connectPair(SMOOTH, seed);
      network.slowDown('a', 'b', { ...SMOOTH, delayMinMs: 0.1, delayMaxMs: 0.2 });
      a.write(count(50));
      a.breakStream();
      pass(100);
      cuts.add(sideB.bytes.length);
      expect(sideB.bytes).toEqual([...count(sideB.bytes.length)]);
      expect([sideA.closed, sideB.closed]).toEqual([['reset by peer'], ['reset by peer']]);
    }
    expect([...cuts].some((length) => length > 0 && length < 50)).toBe(true);
  });

  test('notifies an end that is listened to only after its stream broke', () => {
    const timeline = new Timeline();
    const network = new VirtualNetwork(timeline, new SeededRandom(1), SMOOTH);
    const [sideA, sideB] = [new Side(), new Side()];
    const accepted: VirtualEnd[] = [];
    network.listen('b', 7, (end) => accepted.push(end));
    network.connect('a', 'b', 7, Object.assign(sideA, { onOpen() {}, onFailed() {} }));
    while (timeline.step(10));
    accepted[0]?.breakStream();
    while (timeline.step(20));
    accepted[0]?.listen(sideB);
    while (timeline.step(30));
    expect([sideA.closed, sideB.closed]).toEqual([['reset by peer'], ['reset by peer']]);
  });

  test('loses everything that is written to a broken stream, so that nothing arrives behind a hole', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const { network, a, b, sideB, pass } = connectPair(SMOOTH, seed);
      network.slowDown('a', 'b', { ...SMOOTH, delayMaxMs: 100 });
      a.write(count(100));
      a.breakStream();
      a.write(new Uint8Array(50).fill(200));
      b.end();
      pass(10);
      a.write(new Uint8Array(50).fill(200));
      pass(200);
      expect(sideB.bytes).toEqual([...count(sideB.bytes.length)]);
      expect(sideB.bytes.length).toBeLessThanOrEqual(100);
    }
  });

  test('tells a writer that is faster than its reader when to pause and when to resume', () => {
    const { a, b, sideA, sideB, pass } = connectPair();
    b.pause();
    a.write(count(200 * 1024));
    expect(a.queuedBytes).toBe(0);
    a.write(count(200 * 1024));
    pass(100);
    expect(a.queuedBytes).toBe(144 * 1024);
    expect(sideA.drains).toBe(0);
    b.resume();
    pass(100);
    expect(a.queuedBytes).toBe(0);
    expect(sideA.drains).toBe(1);
    expect(sideB.bytes.length).toBe(400 * 1024);
  });

  test('delivers bytes no faster than the bandwidth of the link', () => {
    const { timeline, network, a, sideB, pass } = connectPair();
    network.slowDown('a', 'b', { ...SMOOTH, bytesPerMs: 10 });
    const startMs = timeline.nowMs;
    a.write(count(1000));
    while (sideB.chunks.length === 0) pass(1);
    expect(timeline.nowMs - startMs).toBeGreaterThanOrEqual(101);
    expect(timeline.nowMs - startMs).toBeLessThanOrEqual(103);
  });
});
