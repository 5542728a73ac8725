/**
 * One direction between two threads: byte records in shared memory, put by one thread and taken by the other.
 *
 *     words, 64 bytes apart                     records
 *     ┌──────┬──────┬────────┬─────────┐        ┌───────┬────────┬────────┬────────┬──────────────┐
 *     │ tail │ head │ asleep │ waiting │        │ free  │ record │ record │ record │     free     │
 *     └──────┴──────┴────────┴─────────┘        └───────┴────────┴────────┴────────┴──────────────┘
 *                                                       ▲ head                     ▲ tail
 *
 *     record := int32 kind << 24 | length, int32 connection, `length` bytes, padded to a multiple of 8
 *
 * Head and tail count bytes modulo 2**32; the capacity is a power of two, so a mask turns them into offsets. A record
 * does not wrap: where it does not fit before the end, a filler of kind 0 takes the remaining space.
 *
 * Rules, each with a mutation that `ring-interleavings.test.ts` detects:
 *
 * 1. A record is complete before the tail moves past it.
 * 2. A record has been copied out before the head moves past it.
 * 3. The writer never writes where the reader may still read: tail − head is at most the capacity.
 * 4. The reader sets its sleep flag before it reads the tail for the last time.
 * 5. The writer moves the tail before it reads the sleep flag.
 * 6. The writer sets its waiting flag before it reads the head for the last time.
 * 7. The reader moves the head before it reads the waiting flag.
 * 8. A side that wakes the other one clears its flag in the same access: one wake-up per sleep.
 *
 * 4 and 5, and 6 and 7, guarantee together that of two threads that race at least one sees the other. They need the
 * sequentially consistent order of `Atomics`; the bytes of records are plain memory, ordered by the accesses around
 * them.
 *
 * An operation on the words is a list of steps with one access each, so that the test can interleave another thread's
 * steps. It costs a few nanoseconds per batch.
 */

/** Bytes before the records. */
const WORDS_BYTES = 256;
const TAIL = 0;
const HEAD = 16;
const ASLEEP = 32;
const WAITING = 48;

export const RECORD_HEADER_BYTES = 8;
const LENGTH_BITS = 24;
const LENGTH_MASK: number = 2 ** LENGTH_BITS - 1;
const FILLER = 0;

/**
 * One access to the words, or one copy of bytes.
 *
 * @returns false: the operation ends here
 */
export type Step<Side> = (side: Side) => boolean;

function run<Side>(steps: readonly Step<Side>[], side: Side): void {
  for (const step of steps) if (!step(side)) return;
}

/** @param capacity bytes of records: a power of two */
export function makeRing(capacity: number): SharedArrayBuffer {
  if (capacity < 32 || (capacity & (capacity - 1)) !== 0) {
    throw new RangeError(`a ring of ${capacity} bytes: expected a power of two, at least 32`);
  }
  return new SharedArrayBuffer(WORDS_BYTES + capacity);
}

/** The writing end of a ring. */
export class RingWriter {
  /** Steps of `publish`. */
  static readonly publishSteps: readonly Step<RingWriter>[] = [
    (side) => side.#moveTail(),
    (side) => side.#takeAsleep(),
  ];
  /** Steps of `awaitRoom`. */
  static readonly awaitRoomSteps: readonly Step<RingWriter>[] = [
    (side) => side.#setWaiting(1),
    (side) => side.#lookAtHead(),
    (side) => side.#setWaiting(0),
  ];

  readonly capacity: number;
  readonly #words: Int32Array;
  readonly #headers: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #mask: number;
  /** End of the last record that was put. */
  #position: number;
  /** The last published tail. */
  #published: number;
  /** The head as last read. */
  #head: number;
  #wakes = false;
  #isRoomWanted = false;
  #wantedBytes = 0;

  constructor(ring: SharedArrayBuffer) {
    this.capacity = ring.byteLength - WORDS_BYTES;
    this.#words = new Int32Array(ring, 0, WORDS_BYTES / 4);
    this.#headers = new Int32Array(ring, WORDS_BYTES);
    this.#bytes = new Uint8Array(ring, WORDS_BYTES);
    this.#mask = this.capacity - 1;
    this.#position = Atomics.load(this.#words, TAIL);
    this.#published = this.#position;
    this.#head = Atomics.load(this.#words, HEAD);
  }

  /** Bytes of the longest record. While three times as much is free, one always fits, filler included. */
  get recordBytesMax(): number {
    return (this.capacity >> 2) - RECORD_HEADER_BYTES;
  }

  /** Bytes that were put and not published. */
  get unpublishedBytes(): number {
    return (this.#position - this.#published) | 0;
  }

  /** Private state of this end, for tests. */
  get state(): string {
    const { wakes, isRoomWanted } = { wakes: this.#wakes, isRoomWanted: this.#isRoomWanted };
    return [this.#position, this.#published, this.#head, wakes, isRoomWanted, this.#wantedBytes].join();
  }

  /**
   * Puts a record; the reader sees it after the next `publish`.
   *
   * @param kind 1 … 127
   * @returns false when there is no room now
   */
  append(kind: number, connection: number, bytes: Uint8Array): boolean {
    if (!this.hasRoom(bytes.length)) return false;
    this.put(kind, connection, bytes);
    return true;
  }

  /**
   * Whether there is room for a record of this length. Reads the head only when its last known value does not suffice.
   */
  hasRoom(length: number): boolean {
    const wanted = this.#bytesFor(length);
    if (this.#freeBytes >= wanted) return true;
    this.#wantedBytes = wanted;
    this.#head = Atomics.load(this.#words, HEAD);
    return this.#freeBytes >= wanted;
  }

  /** Puts a record for which there is room. */
  put(kind: number, connection: number, bytes: Uint8Array): void {
    const place = this.#placeOf(bytes.length);
    const header = place >> 2;
    this.#headers[header] = (kind << LENGTH_BITS) | bytes.length;
    this.#headers[header + 1] = connection;
    if (bytes.length > 0) this.#bytes.set(bytes, place + RECORD_HEADER_BYTES);
    this.#position = (this.#position + sizeOf(bytes.length)) | 0;
  }

  /** Puts a record that holds one 32-bit number, for which there is room. */
  putNumber(kind: number, connection: number, value: number): void {
    const header = this.#placeOf(NUMBER_BYTES) >> 2;
    this.#headers[header] = (kind << LENGTH_BITS) | NUMBER_BYTES;
    this.#headers[header + 1] = connection;
    this.#headers[header + 2] = value;
    this.#position = (this.#position + sizeOf(NUMBER_BYTES)) | 0;
  }

  /** Publishes what was put. @returns true when the reader is asleep: the caller must wake it */
  publish(): boolean {
    if (this.#position === this.#published) return false;
    run(RingWriter.publishSteps, this);
    return this.wakes;
  }

  /** Whether the last `publish` has found the reader asleep. */
  get wakes(): boolean {
    return this.#wakes;
  }

  /**
   * Requests a wake-up when there is room, after `hasRoom` or `append` has returned false.
   *
   * @returns false when there is room by now
   */
  awaitRoom(): boolean {
    run(RingWriter.awaitRoomSteps, this);
    return this.mustWait;
  }

  /** Whether the last `awaitRoom` has found no room. */
  get mustWait(): boolean {
    return this.#isRoomWanted;
  }

  get #freeBytes(): number {
    return this.capacity - ((this.#position - this.#head) | 0);
  }

  /** Size of a record, plus that of the filler that it needs at the current position. */
  #bytesFor(length: number): number {
    const size = sizeOf(length);
    const left = this.capacity - (this.#position & this.#mask);
    return left < size ? left + size : size;
  }

  /** Offset of the next record, after a filler where one is needed. */
  #placeOf(length: number): number {
    const place = this.#position & this.#mask;
    const left = this.capacity - place;
    if (left >= sizeOf(length)) return place;
    this.#headers[place >> 2] = (FILLER << LENGTH_BITS) | (left - RECORD_HEADER_BYTES);
    this.#position = (this.#position + left) | 0;
    return 0;
  }

  #moveTail(): boolean {
    this.#published = this.#position;
    Atomics.store(this.#words, TAIL, this.#position);
    return true;
  }

  #takeAsleep(): boolean {
    this.#wakes = Atomics.exchange(this.#words, ASLEEP, 0) === 1;
    return true;
  }

  #setWaiting(value: 0 | 1): boolean {
    Atomics.store(this.#words, WAITING, value);
    return true;
  }

  #lookAtHead(): boolean {
    this.#head = Atomics.load(this.#words, HEAD);
    this.#isRoomWanted = this.#freeBytes < this.#wantedBytes;
    return !this.#isRoomWanted;
  }
}

/**
 * The reading end of a ring.
 *
 * `take` copies a batch of records into memory of this thread; `next` iterates over it. That memory is not overwritten,
 * so views of it stay valid, until `reuseMemory` declares that there are none.
 */
export class RingReader {
  /** Steps of `take`. */
  static readonly takeSteps: readonly Step<RingReader>[] = [
    (side) => side.#lookAtTail(),
    (side) => side.#copyOut(),
    (side) => side.#moveHead(),
    (side) => side.#takeWaiting(),
  ];
  /** Steps of `sleep`. */
  static readonly sleepSteps: readonly Step<RingReader>[] = [
    (side) => side.#setAsleep(1),
    (side) => !side.#isEmpty(),
    (side) => side.#setAsleep(0),
  ];

  readonly #words: Int32Array;
  readonly #headers: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #capacity: number;
  readonly #mask: number;
  readonly #batchBytesMax: number;
  #head: number;
  /** The tail as last read. */
  #tail: number;
  #wakes = false;
  #isAsleep = false;
  /** Memory that batches are copied into, one after the other. */
  #memory: Uint8Array = new Uint8Array(0);
  #memoryHeaders: Int32Array = new Int32Array(0);
  /** Where the next batch is copied to. */
  #memoryEnd = 0;
  /** Where the next record of the batch is, and the end of the batch. */
  #at = 0;
  #end = 0;
  /** The current record. */
  kind = 0;
  connection = 0;
  length = 0;
  #start = 0;

  /** @param batchBytesMax most that one `take` copies; at least the longest record */
  constructor(ring: SharedArrayBuffer, batchBytesMax: number = Number.POSITIVE_INFINITY) {
    this.#capacity = ring.byteLength - WORDS_BYTES;
    this.#words = new Int32Array(ring, 0, WORDS_BYTES / 4);
    this.#headers = new Int32Array(ring, WORDS_BYTES);
    this.#bytes = new Uint8Array(ring, WORDS_BYTES);
    this.#mask = this.#capacity - 1;
    this.#batchBytesMax = Math.max(batchBytesMax, this.#capacity >> 2);
    this.#head = Atomics.load(this.#words, HEAD);
    this.#tail = this.#head;
  }

  get state(): string {
    return [this.#head, this.#tail, this.#wakes, this.#isAsleep].join();
  }

  /** Copies published records into this thread. @returns false when there are none */
  take(): boolean {
    this.#at = 0;
    this.#end = 0;
    run(RingReader.takeSteps, this);
    return this.#end > this.#at;
  }

  /** Whether the writer waits for the room that the last `take` has made: the caller must wake it. */
  get wakes(): boolean {
    return this.#wakes;
  }

  /** Moves to the next record of the batch. @returns false at its end */
  next(): boolean {
    while (this.#at < this.#end) {
      const word = this.#memoryHeaders[this.#at >> 2]!;
      this.kind = word >>> LENGTH_BITS;
      this.length = word & LENGTH_MASK;
      this.#start = this.#at + RECORD_HEADER_BYTES;
      this.connection = this.#memoryHeaders[(this.#at >> 2) + 1]!;
      this.#at += sizeOf(this.length);
      if (this.kind !== FILLER) return true;
    }
    return false;
  }

  /** Bytes of the current record. */
  bytes(): Uint8Array {
    return this.#memory.subarray(this.#start, this.#start + this.length);
  }

  /** Value of the current record, which was put by `putNumber`. */
  number(): number {
    return this.#memoryHeaders[this.#start >> 2]!;
  }

  /** No views of the batches are in use: the memory, still in cache, is reused. */
  reuseMemory(): void {
    this.#memoryEnd = 0;
  }

  /** Views of the batches stay in use: their memory is not reused. */
  leaveMemory(): void {
    this.#memoryEnd = this.#memory.length;
  }

  /**
   * Requests a wake-up at the next `publish`.
   *
   * @returns false when something has been published meanwhile
   */
  sleep(): boolean {
    run(RingReader.sleepSteps, this);
    return this.#isAsleep;
  }

  /** Whether the last `sleep` found nothing published. */
  get isAsleep(): boolean {
    return this.#isAsleep;
  }

  #lookAtTail(): boolean {
    this.#isAsleep = false;
    this.#wakes = false;
    this.#tail = Atomics.load(this.#words, TAIL);
    return this.#tail !== this.#head;
  }

  #copyOut(): boolean {
    const bytes = this.#batchBytes();
    if (this.#memoryEnd + bytes > this.#memory.length) {
      this.#memory = new Uint8Array(Math.max(bytes, MEMORY_BYTES));
      this.#memoryHeaders = new Int32Array(this.#memory.buffer);
      this.#memoryEnd = 0;
    }
    // Both are multiples of 8: otherwise V8 copies shared memory byte by byte.
    const place = this.#head & this.#mask;
    const first = Math.min(bytes, this.#capacity - place);
    this.#memory.set(this.#bytes.subarray(place, place + first), this.#memoryEnd);
    if (bytes > first) this.#memory.set(this.#bytes.subarray(0, bytes - first), this.#memoryEnd + first);
    this.#at = this.#memoryEnd;
    this.#end = this.#memoryEnd + bytes;
    this.#memoryEnd = this.#end;
    return true;
  }

  /** Size of the next batch: whole records up to its limit. */
  #batchBytes(): number {
    const available = (this.#tail - this.#head) | 0;
    if (available <= this.#batchBytesMax) return available;
    let bytes = 0;
    for (;;) {
      const length = this.#headers[((this.#head + bytes) & this.#mask) >> 2]! & LENGTH_MASK;
      if (bytes + sizeOf(length) > this.#batchBytesMax) return bytes;
      bytes += sizeOf(length);
    }
  }

  #moveHead(): boolean {
    this.#head = (this.#head + (this.#end - this.#at)) | 0;
    Atomics.store(this.#words, HEAD, this.#head);
    return true;
  }

  #takeWaiting(): boolean {
    this.#wakes = Atomics.exchange(this.#words, WAITING, 0) === 1;
    return true;
  }

  #setAsleep(value: 0 | 1): boolean {
    Atomics.store(this.#words, ASLEEP, value);
    return true;
  }

  #isEmpty(): boolean {
    this.#isAsleep = Atomics.load(this.#words, TAIL) === this.#head;
    return this.#isAsleep;
  }
}

/** Size of a record with this many bytes. */
function sizeOf(length: number): number {
  return (RECORD_HEADER_BYTES + length + 7) & ~7;
}

const NUMBER_BYTES = 4;
/** Size of a reader's memory, which batches share. */
const MEMORY_BYTES = 64 * 1024;
