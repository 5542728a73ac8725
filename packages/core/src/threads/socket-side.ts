import { RingReader, RingWriter } from './byte-ring.ts';
import { Outlet } from './outlet.ts';
import {
  INPUT_BYTES_MAX,
  INPUT_COMMON,
  INPUT_STEP,
  looksAfter,
  Order,
  Report,
  writeOpened,
  writeText,
} from './records.ts';
import { type HostStream, ThreadConnection, type ThreadShare, type ThreadStreamEvents } from './thread-connection.ts';

/** The two rings between an I/O thread and the core. */
export interface RingPair {
  readonly toCore: SharedArrayBuffer;
  readonly toThread: SharedArrayBuffer;
}

/**
 * The border's half in an I/O thread: passes socket events to the core, and the core's orders to the sockets.
 *
 * Its host calls `receive` and then `publish` in each turn of its event loop that had events; a wake-up starts such a
 * turn.
 */
export class SocketSide implements ThreadShare {
  readonly outlet: Outlet;
  inputBytes = 0;
  readonly #reader: RingReader;
  readonly #wake: () => void;
  readonly #connections = new Map<number, ThreadConnection>();
  #nextId = 1;
  /** How many more turns it polls before it sleeps. */
  #looks = 0;

  /** @param wake wakes the core's thread, which sleeps */
  constructor({ toCore, toThread }: RingPair, wake: () => void) {
    this.#reader = new RingReader(toThread);
    this.outlet = new Outlet(new RingWriter(toCore), wake);
    this.#wake = wake;
  }

  get inputBytesMax(): number {
    return this.inputBytes > INPUT_COMMON ? INPUT_STEP : INPUT_BYTES_MAX;
  }

  /** Connections that are open or closing. */
  get count(): number {
    return this.#connections.size;
  }

  /** @param port number of the port that has accepted it */
  accept(stream: HostStream, port: number): ThreadStreamEvents {
    const id = this.#nextId;
    this.#nextId = (id + 1) | 0;
    const { remote, isCrowding = false, certificate = null, isSecure = false } = stream;
    const connection = new ThreadConnection(id, stream, this);
    this.#connections.set(id, connection);
    const opened = { port, remote, isCrowding, certificate, isSecure };
    const bytes = writeOpened(opened);
    if (bytes.length <= this.outlet.recordBytesMax) this.outlet.send(Report.opened, id, bytes);
    else {
      // So many names do not fit in any record: the connection is reported without them and closed at once.
      this.outlet.send(Report.opened, id, writeOpened({ ...opened, certificate: null }));
      connection.refuse();
    }
    return connection;
  }

  /** Sends text to the other half. Dropped when too many notes are waiting, or when it is too long for a record. */
  note(text: string): void {
    if (this.outlet.keptCount >= NOTES_MAX) return;
    const bytes = writeText(text);
    if (bytes.length <= this.outlet.recordBytesMax) this.outlet.send(Report.note, 0, bytes);
  }

  onClosed(connection: ThreadConnection): void {
    this.#connections.delete(connection.id);
  }

  /**
   * Executes the core's orders. Socket events are published first, so that the core can process them meanwhile.
   *
   * @returns number of orders
   */
  receive(): number {
    this.outlet.flush();
    const reader = this.#reader;
    let isMemoryFree = true;
    let orders = 0;
    while (reader.take()) {
      if (reader.wakes) this.#wake();
      let records = 0;
      for (; reader.next(); records++) if (!this.#execute(reader)) isMemoryFree = false;
      this.#looks = looksAfter(records);
      if (isMemoryFree) reader.reuseMemory();
      else reader.leaveMemory();
      orders += records;
    }
    return orders;
  }

  /** The end of a turn. @returns false when the host must start another turn without waiting for a wake-up */
  publish(): boolean {
    this.outlet.flush();
    if (this.#looks > 0) {
      this.#looks--;
      return false;
    }
    return this.#reader.sleep();
  }

  /** @returns false when the memory of the order is still needed */
  #execute(reader: RingReader): boolean {
    const connection = this.#connections.get(reader.connection);
    // Closed already; the core does not know yet.
    if (connection === undefined) return true;
    switch (reader.kind) {
      case Order.write:
        return connection.write(reader.bytes());
      case Order.end:
        connection.end();
        return true;
      case Order.destroy:
        connection.destroy();
        return true;
      case Order.finish:
        connection.finish();
        return true;
      case Order.linger:
        connection.linger();
        return true;
      case Order.credit:
        connection.credit(reader.number());
        return true;
      default:
        throw new Error(`an order of kind ${reader.kind} for connection ${reader.connection}: no such kind`);
    }
  }
}

/** Notes that wait for room; limited because peers can cause them. */
const NOTES_MAX = 10_000;
