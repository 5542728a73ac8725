/**
 * Both halves of the border with virtual threads, sockets and cores. A thread gets a turn only when its own sockets or
 * work produced something, or when it was woken: a missing wake-up leaves something undelivered at the end.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ByteStream, StreamEvents } from '../base/ports.ts';
import { makeRing } from './byte-ring.ts';
import { CoreSide } from './core-side.ts';
import { INPUT_BYTES_MAX, OUTPUT_BYTES_MAX, OUTPUT_COMMON, OUTPUT_STEP } from './records.ts';
import { SocketSide } from './socket-side.ts';
import type { HostStream, ThreadStreamEvents } from './thread-connection.ts';

/** Short enough for the smallest ring below. */
const REMOTE = { ip: Uint8Array.of(1, 1, 1, 1), host: '1.1.1.1', port: 9 };

/** A socket with a kernel that accepts bytes only when told to. */
class VirtualSocket implements HostStream {
  readonly remote = REMOTE;
  readonly #border: Border;
  readonly #events: ThreadStreamEvents;
  /** Bytes that its peer has sent and it has not delivered; bytes that the peer has received. */
  #coming: number[] = [];
  #queued: Uint8Array[] = [];
  readonly got: number[] = [];
  #room = 0;
  isPaused = false;
  isEnding = false;
  isClosed = false;
  #sent = 0;

  constructor(border: Border) {
    this.#border = border;
    this.#events = border.sockets.accept(this, 0);
    border.isThreadDue = true;
  }

  get queuedBytes(): number {
    return this.#queued.reduce((sum, { length }) => sum + length, 0);
  }

  get sent(): number {
    return this.#sent;
  }

  /** The peer sends a frame of this length in two chunks. */
  receive(length: number, cut: number): void {
    const body = Array.from({ length }, () => this.#sent++ & 0xff);
    this.#sent -= length;
    const head = [length >> 24, (length >> 16) & 0xff, (length >> 8) & 0xff, length & 0xff];
    const frame = [...head, ...body];
    this.#sent += length;
    this.deliver(frame.slice(0, cut % frame.length));
    this.deliver(frame.slice(cut % frame.length));
  }

  deliver(bytes: readonly number[]): void {
    this.#coming.push(...bytes);
    this.#flow();
  }

  #flow(): void {
    if (this.isPaused || this.isEnding || this.isClosed || this.#coming.length === 0) return;
    const chunk = Uint8Array.from(this.#coming);
    this.#coming = [];
    this.#border.isThreadDue = true;
    this.#events.onBytes(chunk);
  }

  write(bytes: Uint8Array): void {
    if (this.isEnding) return;
    this.#queued.push(bytes);
    this.#take();
  }

  /** The kernel accepts this many bytes. */
  give(room: number): void {
    if (this.isClosed) return;
    const wasQueued = this.#queued.length > 0;
    this.#room += room;
    this.#take();
    if (!wasQueued || this.#queued.length > 0) return;
    this.#border.isThreadDue = true;
    if (this.isEnding) this.close('closed by this server');
    else this.#events.onDrain();
  }

  #take(): void {
    for (let bytes = this.#queued[0]; bytes !== undefined && this.#room > 0; bytes = this.#queued[0]) {
      const taken = bytes.subarray(0, this.#room);
      this.#room -= taken.length;
      this.got.push(...taken);
      if (taken.length === bytes.length) this.#queued.shift();
      else this.#queued[0] = bytes.subarray(taken.length);
    }
  }

  end(): void {
    this.isEnding = true;
    if (this.#queued.length === 0) this.#border.later(() => this.close('closed by this server'));
  }

  destroy(): void {
    this.isEnding = true;
    this.#queued = [];
    this.#border.later(() => this.close('closed by this server'));
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
    this.#border.later(() => this.#flow());
  }

  halfClose(): void {
    if (this.isClosed || this.isEnding) return;
    this.#border.isThreadDue = true;
    this.#events.onHalfClosed();
  }

  close(reason: string): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#border.isThreadDue = true;
    this.#events.onClosed(reason);
  }
}

/** The core's side of a stream. */
class VirtualConnection implements StreamEvents {
  readonly stream: ByteStream;
  readonly #border: Border;
  readonly got: number[] = [];
  sent: number[] = [];
  isPaused = false;
  isEnded = false;
  closed: string | null = null;
  drains = 0;

  constructor(stream: ByteStream, border: Border) {
    this.stream = stream;
    this.#border = border;
  }

  onBytes(chunk: Uint8Array): void {
    if (this.isPaused) throw new Error('bytes arrived while paused');
    if (this.closed !== null) throw new Error('bytes arrived after the end');
    this.got.push(...chunk);
  }

  onDrain(): void {
    this.drains++;
    if (this.stream.queuedBytes !== 0) throw new Error('drained although bytes are queued');
  }

  onClosed(reason: string): void {
    if (this.closed !== null) throw new Error('closed twice');
    this.closed = reason;
  }

  write(length: number): void {
    if (this.isEnded || this.closed !== null) return;
    this.#border.isCoreDue = true;
    const bytes = Uint8Array.from({ length }, (_, i) => this.sent.length + i);
    this.sent.push(...bytes);
    this.stream.write(bytes);
    // Bytes that were sent belong to the caller again.
    if (this.stream.queuedBytes === 0) bytes.fill(255);
  }
}

class Border {
  readonly sockets: SocketSide;
  readonly core: CoreSide;
  readonly opened: VirtualSocket[] = [];
  readonly connections: VirtualConnection[] = [];
  readonly notes: string[] = [];
  isThreadDue = false;
  isCoreDue = false;
  #later: (() => void)[] = [];

  constructor(capacity: number) {
    const rings = { toCore: makeRing(capacity), toThread: makeRing(capacity) };
    this.sockets = new SocketSide(rings, () => {
      this.isCoreDue = true;
    });
    const wake = (): void => {
      this.isThreadDue = true;
    };
    this.core = new CoreSide(rings, wake, {
      onStream: (stream) => {
        const connection = new VirtualConnection(stream, this);
        this.connections.push(connection);
        return connection;
      },
      onGone: () => {},
      onNote: (text) => this.notes.push(text),
      onBytesRead: () => {},
    });
    this.isThreadDue = true;
    this.isCoreDue = true;
  }

  later(event: () => void): void {
    this.#later.push(event);
  }

  threadTurn(): boolean {
    if (!this.isThreadDue && this.#later.length === 0) return false;
    for (const event of this.#later.splice(0)) event();
    this.isThreadDue = false;
    this.sockets.receive();
    if (!this.sockets.publish()) this.isThreadDue = true;
    return true;
  }

  coreTurn(): boolean {
    if (!this.isCoreDue) return false;
    this.isCoreDue = false;
    this.core.receive();
    if (!this.core.publish()) this.isCoreDue = true;
    return true;
  }

  settle(): void {
    for (let turns = 0; this.threadTurn() || this.coreTurn(); turns++) {
      if (turns > 100_000) throw new Error('the threads never become idle');
    }
  }
}

const number = fc.nat({ max: 1_000_000 });
const action = fc.record({
  do: fc.constantFrom(
    ...(['receive', 'receive', 'write', 'write', 'give', 'pause', 'resume', 'thread', 'core', 'open'] as const),
    ...(['end', 'destroy', 'reset', 'halfClose'] as const),
  ),
  which: number,
  length: fc.oneof({ weight: 4, arbitrary: fc.nat({ max: 60 }) }, fc.nat({ max: 3000 })),
  cut: number,
});

type Action = typeof action extends fc.Arbitrary<infer T> ? T : never;

function play(capacity: number, actions: readonly Action[]): Border {
  const border = new Border(capacity);
  const { opened, connections } = border;
  opened.push(new VirtualSocket(border));
  for (const { do: what, which, length, cut } of actions) {
    const socket = opened[which % opened.length]!;
    const connection = connections[which % Math.max(1, connections.length)];
    const isLive = connection !== undefined && connection.closed === null && !connection.isEnded;
    switch (what) {
      case 'open':
        if (opened.length < 5) opened.push(new VirtualSocket(border));
        break;
      case 'receive':
        socket.receive(length, cut);
        break;
      case 'give':
        socket.give(length);
        break;
      case 'reset':
        if (cut % 4 === 0) socket.close('reset by peer');
        break;
      case 'halfClose':
        if (cut % 4 === 0) socket.halfClose();
        break;
      case 'thread':
        border.threadTurn();
        break;
      case 'core':
        border.coreTurn();
        break;
      case 'write':
        connection?.write(length);
        break;
      case 'pause':
      case 'resume':
        if (!isLive) break;
        connection.isPaused = what === 'pause';
        connection.stream[what]();
        border.isCoreDue = true;
        break;
      case 'end':
      case 'destroy':
        if (!isLive || cut % 4 !== 0) break;
        connection.isEnded = true;
        connection.stream[what]();
        border.isCoreDue = true;
        break;
    }
  }
  return border;
}

describe('the border between sockets and core', () => {
  test('each of thousands of streams may send what its thread reports, however much all of them have sent', () => {
    const border = new Border(16_384);
    for (let i = 0; i < 5000; i++) border.opened.push(new VirtualSocket(border));
    border.settle();
    expect(border.core.count).toBe(5000);
    border.core.outputBytes = OUTPUT_COMMON + 1;
    expect(border.core.outputBytesMax).toBeGreaterThanOrEqual(OUTPUT_STEP);
  });

  test.each([512, 1024, 16_384])('loses nothing, in rings of %i bytes', (capacity) => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 120, size: 'max' }), (actions) => {
        const border = play(capacity, actions);
        for (const socket of border.opened) socket.give(1_000_000);
        border.settle();
        for (const connection of border.connections) {
          if (!connection.isPaused || connection.closed !== null) continue;
          connection.isPaused = false;
          connection.stream.resume();
          border.isCoreDue = true;
        }
        border.settle();
        expect(border.connections.length).toBe(border.opened.length);
        for (const [i, connection] of border.connections.entries()) {
          const socket = border.opened[i]!;
          // What was received is a prefix of what was sent; on a live connection, all of it.
          const sent = connection.sent.map((byte) => byte & 0xff);
          expect(socket.got).toEqual(sent.slice(0, socket.got.length));
          if (socket.isClosed) expect(connection.closed).not.toBeNull();
          else {
            expect(socket.got.length).toBe(sent.length);
            expect(connection.closed).toBeNull();
            expect(connection.stream.queuedBytes).toBe(0);
          }
          const bodies = bodiesOf(connection.got);
          expect(bodies).toEqual(bodies.map((_, at) => at & 0xff));
          if (!socket.isClosed && !socket.isEnding) expect(bodies.length).toBe(socket.sent);
        }
        expect(border.core.count).toBe(border.opened.filter(({ isClosed }) => !isClosed).length);
        expect(border.sockets.count).toBe(border.core.count);
        if (border.core.count === 0) expect([border.sockets.inputBytes, border.core.outputBytes]).toEqual([0, 0]);
      }),
      { numRuns: 300 },
    );
  });

  test('limits a client that does not read to its own share', () => {
    const border = new Border(16_384);
    const [deaf, other] = [new VirtualSocket(border), new VirtualSocket(border)];
    border.settle();
    const [toDeaf, toOther] = border.connections as [VirtualConnection, VirtualConnection];
    other.give(Number.POSITIVE_INFINITY);
    for (let i = 0; i < 100; i++) {
      toDeaf.write(10_000);
      toOther.write(100);
      border.settle();
      expect(other.got.length).toBe((i + 1) * 100);
    }
    expect(deaf.queuedBytes).toBeLessThanOrEqual(OUTPUT_BYTES_MAX);
    expect(toDeaf.stream.queuedBytes).toBe(1_000_000);
    deaf.give(Number.POSITIVE_INFINITY);
    border.settle();
    expect([deaf.got.length, toDeaf.drains, toDeaf.stream.queuedBytes]).toEqual([1_000_000, 1, 0]);
  });

  test('stops reading only the client that the core does not read', () => {
    const border = new Border(16_384);
    const [eager, other] = [new VirtualSocket(border), new VirtualSocket(border)];
    border.settle();
    const [fromEager, fromOther] = border.connections as [VirtualConnection, VirtualConnection];
    fromEager.isPaused = true;
    fromEager.stream.pause();
    for (let i = 0; i < 100; i++) {
      eager.receive(10_000, 0);
      other.receive(100, 0);
      border.settle();
      expect(fromOther.got.length).toBe((i + 1) * 104);
    }
    expect(eager.isPaused).toBe(true);
    expect(border.sockets.inputBytes).toBeLessThan(INPUT_BYTES_MAX + 40_000);
    fromEager.isPaused = false;
    fromEager.stream.resume();
    border.isCoreDue = true;
    border.settle();
    expect(fromEager.got.length).toBe(100 * 10_004);
  });

  test('keeps the order of input that was held back and of input that comes with what ends that', () => {
    const border = new Border(16_384);
    const [waker, sender] = [new VirtualSocket(border), new VirtualSocket(border)];
    border.settle();
    const [first, held] = border.connections as [VirtualConnection, VirtualConnection];
    held.isPaused = true;
    held.stream.pause();
    sender.receive(10, 0);
    border.settle();
    // In one batch of records: bytes of another client that let it be read again, and more of its own.
    first.onBytes = () => {
      held.isPaused = false;
      held.stream.resume();
    };
    waker.receive(10, 0);
    sender.receive(10, 0);
    border.settle();
    expect(bodiesOf(held.got)).toEqual(Array.from({ length: 20 }, (_, at) => at));
  });

  test('drops notes while too many wait for room, and passes the others in their order', () => {
    const border = new Border(1024);
    const send = (from: number, count: number): void => {
      for (let i = from; i < from + count; i++) border.sockets.note(`${i}`);
      border.isThreadDue = true;
    };
    send(0, 20_000);
    border.settle();
    const passed = border.notes.length;
    expect(passed).toBeGreaterThanOrEqual(10_000);
    expect(passed).toBeLessThan(10_500);
    send(20_000, 3);
    border.settle();
    const expected = [...Array(passed).keys(), 20_000, 20_001, 20_002];
    expect(border.notes).toEqual(expected.map(String));
  });

  test('forgets a connection that was reset while its input waited for room and the core closed it', () => {
    const border = new Border(1024);
    const socket = new VirtualSocket(border);
    border.settle();
    const [connection] = border.connections as [VirtualConnection];
    socket.receive(3000, 0);
    socket.close('reset by peer');
    // More than the socket accepts at once: the end of the stream waits for its peer.
    connection.write(100_000);
    connection.write(100_000);
    connection.isEnded = true;
    connection.stream.end();
    border.settle();
    expect([connection.closed, border.core.count, border.sockets.count]).toEqual(['reset by peer', 0, 0]);
  });

  test('drops a note that is too long for a record, and continues', () => {
    const border = new Border(1024);
    const socket = new VirtualSocket(border);
    border.sockets.note('n'.repeat(2000));
    socket.receive(20, 0);
    border.isThreadDue = true;
    border.settle();
    expect(border.connections[0]?.got.length).toBe(24);
  });

  test('closes the streams of a thread that has died', () => {
    const border = new Border(1024);
    const socket = new VirtualSocket(border);
    border.settle();
    socket.receive(20, 0);
    const [connection] = border.connections;
    border.core.onDead('its thread has ended');
    expect([connection?.closed, border.core.count]).toEqual(['its thread has ended', 0]);
  });
});

/** The bytes inside frames. */
function bodiesOf(bytes: readonly number[]): number[] {
  const bodies: number[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
    bodies.push(...bytes.slice(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return bodies;
}
