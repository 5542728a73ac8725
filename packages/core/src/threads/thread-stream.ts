import type { ByteStream, PeerAddress, PeerCertificate, StreamEvents } from '../base/ports.ts';
import type { Outlet, RoomSeeker } from './outlet.ts';
import { INPUT_STEP, type Opened, Order } from './records.ts';

/** State shared by the streams of one I/O thread, in the core's thread. */
export interface StreamShare {
  readonly outlet: Outlet;
  /** Bytes of output in flight, of all streams. */
  outputBytes: number;
  /** Current limit for one stream. */
  readonly outputBytesMax: number;
  /** The stream was resumed: its held input must be delivered, as a separate event. */
  onResumed(stream: ThreadStream): void;
  /** The stream is notified at the end of this turn. */
  onHalfClosed(stream: ThreadStream): void;
  /** Called with bytes that the core has read. */
  onBytesRead(bytes: number, stream: ThreadStream): void;
}

/**
 * A connection of an I/O thread, as the core sees it.
 *
 *     write ─► ring ─► socket ─► kernel          in flight: #outputBytes, until the thread reports them as accepted
 *        └──► #queue, while its share is used up, the ring is full or the kernel accepts nothing
 *
 * The thread is not told of a pause: input is held back here and gives it no credit, so it stops reading the socket.
 */
export class ThreadStream implements ByteStream, RoomSeeker {
  readonly remote: PeerAddress;
  readonly isCrowding: boolean;
  readonly certificate: PeerCertificate | null;
  readonly isSecure: boolean;
  readonly #id: number;
  readonly #share: StreamShare;
  #events: StreamEvents | null = null;
  /** Output for which the ring had no room, oldest first; it belongs to the stream until `onDrain`. */
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  #outputBytes = 0;
  #isBackedUp = false;
  #owesDrain = false;
  /** Input that arrived while paused. */
  #held: Uint8Array[] = [];
  /** Input that was read but not credited to the thread yet. */
  #readBytes = 0;
  #isPaused = false;
  /** The peer has closed its sending side, after the input that is held back. */
  #isHalfClosed = false;
  /** The order that closes it once the queue is empty; null: none. */
  #ending: typeof Order.end | typeof Order.finish | typeof Order.destroy | null = null;

  constructor(id: number, { remote, isCrowding, certificate, isSecure }: Opened, share: StreamShare) {
    this.remote = remote;
    this.isCrowding = isCrowding;
    this.certificate = certificate;
    this.isSecure = isSecure;
    this.#id = id;
    this.#share = share;
  }

  open(events: StreamEvents): void {
    this.#events = events;
  }

  /* --------------------------------------------------------------------------------------- from the core ---- */

  get queuedBytes(): number {
    return this.#owesDrain ? this.#outputBytes + this.#queuedBytes : 0;
  }

  write(bytes: Uint8Array): void {
    if (this.#ending !== null || bytes.length === 0) return;
    const sent = this.#owesDrain || this.#isBackedUp ? 0 : this.#send(bytes);
    if (sent === bytes.length) return;
    this.#queue.push(sent === 0 ? bytes : bytes.subarray(sent));
    this.#queuedBytes += bytes.length - sent;
    this.#owesDrain = true;
  }

  end(): void {
    this.#close(Order.end);
  }

  destroy(): void {
    if (this.#ending === Order.destroy) return;
    this.#dropQueue();
    this.#ending = Order.destroy;
    this.#share.outlet.send(Order.destroy, this.#id);
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#held.length > 0) this.#share.onResumed(this);
  }

  /* ------------------------------------------------------------------------------------- from the thread ---- */

  /**
   * The peer has closed its sending side in a turn that is over: its answers are still sent, a long one until its end.
   */
  onHalfClosed(): void {
    this.#isHalfClosed = true;
    if (this.#held.length > 0) return;
    if (this.#events?.isAnswering !== true) this.#close(Order.finish);
  }

  onBytes(bytes: Uint8Array): void {
    if (this.#ending !== null) return;
    // Copied, as it is kept for longer than the batch.
    if (this.#isPaused || this.#held.length > 0) this.#held.push(bytes.slice());
    else this.#read(bytes);
  }

  /** Delivers held input, until the stream is paused again. */
  readHeld(): void {
    while (!this.#isPaused && this.#ending === null) {
      const bytes = this.#held.shift();
      if (bytes === undefined) break;
      this.#read(bytes);
    }
    if (this.#isHalfClosed && this.#held.length === 0) this.#share.onHalfClosed(this);
  }

  onBackedUp(): void {
    this.#isBackedUp = true;
  }

  onTaken(bytes: number): void {
    this.#outputBytes -= bytes;
    this.#share.outputBytes -= bytes;
    this.#sendQueue();
  }

  onDrained(bytes: number): void {
    this.#isBackedUp = false;
    this.onTaken(bytes);
  }

  /** @returns false when more waits for room */
  onRoom(): boolean {
    return this.#sendQueue();
  }

  onClosed(reason: string): void {
    this.#ending ??= Order.destroy;
    this.#dropQueue();
    this.#held = [];
    this.#share.outputBytes -= this.#outputBytes;
    this.#outputBytes = 0;
    const events = this.#events;
    this.#events = null;
    events?.onClosed(reason);
  }

  /* ------------------------------------------------------------------------------------------------------- */

  #read(bytes: Uint8Array): void {
    this.#share.onBytesRead(bytes.length, this);
    this.#readBytes += bytes.length;
    if (this.#readBytes >= INPUT_STEP) {
      this.#share.outlet.sendNumber(Order.credit, this.#id, this.#readBytes);
      this.#readBytes = 0;
    }
    this.#events?.onBytes(bytes);
  }

  /** @returns how many bytes were sent */
  #send(bytes: Uint8Array): number {
    const { outlet } = this.#share;
    let at = 0;
    while (at < bytes.length) {
      const room = this.#share.outputBytesMax - this.#outputBytes;
      if (room <= 0) break;
      const length = Math.min(bytes.length - at, outlet.recordBytesMax, room);
      if (!outlet.offer(Order.write, this.#id, length === bytes.length ? bytes : bytes.subarray(at, at + length))) {
        outlet.seekRoom(this);
        break;
      }
      at += length;
      this.#outputBytes += length;
      this.#share.outputBytes += length;
    }
    return at;
  }

  /** @returns false when more waits for room */
  #sendQueue(): boolean {
    if (!this.#owesDrain || this.#isBackedUp) return true;
    for (let bytes = this.#queue[0]; bytes !== undefined; bytes = this.#queue[0]) {
      const hadRoom = this.#share.outputBytesMax > this.#outputBytes;
      const sent = this.#send(bytes);
      this.#queuedBytes -= sent;
      if (sent < bytes.length) {
        this.#queue[0] = bytes.subarray(sent);
        return !hadRoom || this.#share.outputBytesMax <= this.#outputBytes;
      }
      this.#queue.shift();
    }
    this.#owesDrain = false;
    if (this.#ending !== null) this.#share.outlet.send(this.#ending, this.#id);
    else this.#events?.onDrain();
    return true;
  }

  #close(order: typeof Order.end | typeof Order.finish): void {
    if (this.#ending !== null) return;
    this.#ending = order;
    this.#held = [];
    this.#share.outlet.send(this.#owesDrain ? Order.linger : order, this.#id);
  }

  #dropQueue(): void {
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#owesDrain = false;
    this.#share.outlet.forget(this);
  }
}
