import type { ByteStream, StreamEvents } from '../base/ports.ts';
import { RingReader, RingWriter } from './byte-ring.ts';
import { Outlet } from './outlet.ts';
import { looksAfter, OUTPUT_BYTES_MAX, OUTPUT_COMMON, OUTPUT_STEP, Report, readOpened, readText } from './records.ts';
import type { RingPair } from './socket-side.ts';
import { type StreamShare, ThreadStream } from './thread-stream.ts';

/** Events of an I/O thread. */
export interface CoreSideEvents {
  /** @param port number of the port that has accepted it */
  onStream(stream: ByteStream, port: number): StreamEvents;
  /** The stream is closed; called after its own `onClosed`. */
  onGone(stream: ByteStream): void;
  /** Text passed to `note` in the other half. */
  onNote(text: string): void;
  onBytesRead(bytes: number, stream: ByteStream): void;
}

/**
 * The border's half in the core's thread: the streams of one I/O thread.
 *
 * In each turn its host calls `receive`, then runs the end of the core's turn, then calls `publish`; a wake-up starts a
 * turn.
 */
export class CoreSide implements StreamShare {
  readonly outlet: Outlet;
  outputBytes = 0;
  readonly #reader: RingReader;
  readonly #wake: () => void;
  readonly #events: CoreSideEvents;
  readonly #streams = new Map<number, ThreadStream>();
  /** Streams that were paused and have been resumed. */
  readonly #resumed = new Set<ThreadStream>();
  /** Streams whose peers have closed their sending side in this turn. */
  #halfClosed: ThreadStream[] = [];
  /** How many more turns it polls before it sleeps. */
  #looks = 0;

  /** @param wake wakes the I/O thread, which sleeps */
  constructor({ toCore, toThread }: RingPair, wake: () => void, events: CoreSideEvents) {
    this.#reader = new RingReader(toCore, BATCH_BYTES_MAX);
    this.outlet = new Outlet(new RingWriter(toThread), wake);
    this.#wake = wake;
    this.#events = events;
  }

  get outputBytesMax(): number {
    return this.outputBytes > OUTPUT_COMMON ? OUTPUT_STEP : OUTPUT_BYTES_MAX;
  }

  /** Streams that are open or closing. */
  get count(): number {
    return this.#streams.size;
  }

  onResumed(stream: ThreadStream): void {
    this.#resumed.add(stream);
  }

  onHalfClosed(stream: ThreadStream): void {
    this.#halfClosed.push(stream);
  }

  onBytesRead(bytes: number, stream: ByteStream): void {
    this.#events.onBytesRead(bytes, stream);
  }

  /** Delivers what has arrived: at most one batch, so that a turn stays short. @returns number of records */
  receive(): number {
    if (this.#resumed.size > 0) {
      const resumed = [...this.#resumed];
      this.#resumed.clear();
      for (const stream of resumed) stream.readHeld();
    }
    const reader = this.#reader;
    if (!reader.take()) return 0;
    if (reader.wakes) this.#wake();
    let records = 0;
    for (; reader.next(); records++) this.#deliver(reader);
    this.#looks = looksAfter(records);
    return records;
  }

  /** The end of a turn. @returns false when the host must start another turn without waiting for a wake-up */
  publish(): boolean {
    if (this.#halfClosed.length > 0) {
      const halfClosed = this.#halfClosed;
      this.#halfClosed = [];
      for (const stream of halfClosed) stream.onHalfClosed();
    }
    this.outlet.flush();
    if (this.#looks > 0) {
      this.#looks--;
      return false;
    }
    return this.#resumed.size === 0 && this.#reader.sleep();
  }

  /** The I/O thread has ended, and its connections with it. */
  onDead(reason: string): void {
    this.#resumed.clear();
    this.#halfClosed = [];
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const stream of streams) {
      stream.onClosed(reason);
      this.#events.onGone(stream);
    }
  }

  #deliver(reader: RingReader): void {
    const { kind, connection } = reader;
    if (kind === Report.opened) {
      const opened = readOpened(reader.bytes());
      const stream = new ThreadStream(connection, opened, this);
      this.#streams.set(connection, stream);
      stream.open(this.#events.onStream(stream, opened.port));
      return;
    }
    if (kind === Report.note) {
      this.#events.onNote(readText(reader.bytes()));
      return;
    }
    const stream = this.#streams.get(connection);
    if (stream === undefined) throw new Error(`a report of kind ${kind} for connection ${connection}: it is not open`);
    switch (kind) {
      case Report.bytes:
        stream.onBytes(reader.bytes());
        return;
      case Report.halfClosed:
        this.onHalfClosed(stream);
        return;
      case Report.closed:
        this.#streams.delete(connection);
        stream.onClosed(readText(reader.bytes()));
        this.#events.onGone(stream);
        return;
      case Report.taken:
        stream.onTaken(reader.number());
        return;
      case Report.backedUp:
        stream.onBackedUp();
        return;
      case Report.drained:
        stream.onDrained(reader.number());
        return;
      default:
        throw new Error(`a report of kind ${kind} for connection ${connection}: no such kind`);
    }
  }
}

/** Bytes of records delivered in one turn: usually some thousands of requests. */
const BATCH_BYTES_MAX = 256 * 1024;
