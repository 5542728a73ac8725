import type { ByteStream, StreamEvents } from '../base/ports.ts';
import { FrameGate, GATE_BYTES_MAX } from './frame-gate.ts';
import type { Outlet, RoomSeeker } from './outlet.ts';
import { OUTPUT_STEP, Report, writeText } from './records.ts';

/** A stream of the host of an I/O thread. */
export interface HostStream extends ByteStream {
  /**
   * The peer has closed its sending side and no output follows: closes once everything is sent. Omitted: same as `end`.
   */
  finish?(): void;
  /** About to be closed: the peer has limited time to read what is written until then. */
  linger?(): void;
}

/** Stream events, plus the peer's closing of its sending side. */
export interface ThreadStreamEvents extends StreamEvents {
  onHalfClosed(): void;
}

/** State shared by the connections of one I/O thread. */
export interface ThreadShare {
  readonly outlet: Outlet;
  /** Bytes of input in flight, of all connections. */
  inputBytes: number;
  /** Current limit for one connection. */
  readonly inputBytesMax: number;
  onClosed(connection: ThreadConnection): void;
}

/**
 * A connection in its I/O thread: passes whole frames to the core, and the core's answers to the socket.
 *
 *     socket ─► FrameGate ─► ring, or #pending while that is full ─► core
 *            ◄────────────── write, end, destroy ◄───────────────────
 *
 * The socket is read while nothing is pending and the input that the core has not read is within a budget.
 */
export class ThreadConnection implements ThreadStreamEvents, RoomSeeker {
  readonly id: number;
  /** The core decides: see `onHalfClosed`. */
  readonly isAnswering = true;
  readonly #stream: HostStream;
  readonly #share: ThreadShare;
  readonly #gate: FrameGate = new FrameGate(GATE_BYTES_MAX);
  /** Input for which the ring had no room, oldest first. */
  readonly #pending: Uint8Array[] = [];
  /** Input in flight. */
  #inputBytes = 0;
  /** Output that the kernel has accepted and that has not been reported to the core. */
  #takenBytes = 0;
  /** Output that the kernel has not accepted. */
  #untakenBytes = 0;
  #isPaused = false;
  /** The core has finished with it. */
  #isEnding = false;
  #isHalfClosed = false;
  /** Why it was closed; null while it is open. */
  #closeReason: string | null = null;

  constructor(id: number, stream: HostStream, share: ThreadShare) {
    this.id = id;
    this.#stream = stream;
    this.#share = share;
  }

  /* ------------------------------------------------------------------------------------- from the socket ---- */

  onBytes(chunk: Uint8Array): void {
    if (this.#isEnding) return;
    const bytes = this.#gate.pass(chunk);
    if (bytes.length === 0) return;
    this.#inputBytes += bytes.length;
    this.#share.inputBytes += bytes.length;
    const sent = this.#pending.length > 0 ? 0 : this.#send(bytes);
    if (sent < bytes.length) this.#pending.push(bytes.subarray(sent));
    this.#regulate();
  }

  /** Closes the connection before it has sent anything. */
  refuse(): void {
    this.#isEnding = true;
    this.#stream.destroy();
  }

  onDrain(): void {
    const { outlet } = this.#share;
    outlet.sendNumber(Report.drained, this.id, this.#takenBytes + this.#untakenBytes);
    this.#takenBytes = 0;
    this.#untakenBytes = 0;
  }

  onHalfClosed(): void {
    this.#isHalfClosed = true;
    if (this.#pending.length === 0) this.#share.outlet.send(Report.halfClosed, this.id);
  }

  onClosed(reason: string): void {
    this.#closeReason = reason;
    if (this.#isEnding) this.#dropPending();
    if (this.#pending.length === 0) this.#reportClosed(reason);
  }

  /** Sends pending input, then what arrived after it. */
  onRoom(): boolean {
    for (let bytes = this.#pending[0]; bytes !== undefined; bytes = this.#pending[0]) {
      const sent = this.#send(bytes);
      if (sent < bytes.length) {
        this.#pending[0] = bytes.subarray(sent);
        return false;
      }
      this.#pending.shift();
    }
    if (this.#closeReason !== null) this.#reportClosed(this.#closeReason);
    else {
      if (this.#isHalfClosed) this.#share.outlet.send(Report.halfClosed, this.id);
      this.#regulate();
    }
    return true;
  }

  /** @returns how many bytes had room */
  #send(bytes: Uint8Array): number {
    const { outlet } = this.#share;
    let at = 0;
    while (at < bytes.length) {
      const end = Math.min(bytes.length, at + outlet.recordBytesMax);
      const piece = at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end);
      if (!outlet.offer(Report.bytes, this.id, piece)) {
        outlet.seekRoom(this);
        break;
      }
      at = end;
    }
    return at;
  }

  #regulate(): void {
    if (this.#isEnding) return;
    const isPaused = this.#pending.length > 0 || this.#inputBytes > this.#share.inputBytesMax;
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    if (isPaused) this.#stream.pause();
    else this.#stream.resume();
  }

  #dropPending(): void {
    this.#pending.length = 0;
    this.#share.outlet.forget(this);
  }

  #reportClosed(reason: string): void {
    this.#share.inputBytes -= this.#inputBytes;
    this.#inputBytes = 0;
    this.#share.outlet.send(Report.closed, this.id, writeText(reason));
    this.#share.onClosed(this);
  }

  /* --------------------------------------------------------------------------------------- from the core ---- */

  /** @returns false when the socket keeps the memory */
  write(bytes: Uint8Array): boolean {
    if (this.#closeReason !== null) return true;
    this.#stream.write(bytes);
    if (this.#stream.queuedBytes === 0) {
      this.#takenBytes += bytes.length;
      if (this.#takenBytes >= OUTPUT_STEP) {
        this.#share.outlet.sendNumber(Report.taken, this.id, this.#takenBytes);
        this.#takenBytes = 0;
      }
      return true;
    }
    if (this.#untakenBytes === 0) this.#share.outlet.send(Report.backedUp, this.id);
    this.#untakenBytes += bytes.length;
    return false;
  }

  end(): void {
    this.#leave();
    this.#stream.end();
  }

  destroy(): void {
    this.#leave();
    this.#stream.destroy();
  }

  finish(): void {
    this.#leave();
    if (this.#stream.finish === undefined) this.#stream.end();
    else this.#stream.finish();
  }

  linger(): void {
    this.#leave();
    this.#stream.linger?.();
  }

  credit(bytes: number): void {
    this.#inputBytes -= bytes;
    this.#share.inputBytes -= bytes;
    this.#regulate();
  }

  #leave(): void {
    this.#isEnding = true;
    this.#dropPending();
    if (this.#closeReason !== null) this.#reportClosed(this.#closeReason);
  }
}
