import type { Socket } from 'node:net';
import type { Turn } from './turn.ts';
import { WaitingOutput } from './waiting-output.ts';
import { AT_ONCE_BYTES_MAX, type PacedWriter, type WritePace } from './write-pace.ts';

/** What a socket is sent. */
export class SocketOutput implements PacedWriter {
  readonly #socket: Socket;
  readonly #turn: Turn;
  readonly #isSecure: boolean;
  readonly #pace: WritePace | null;
  readonly #onDrain: () => void;
  /** The kernel did not take everything at once: `onDrain` is owed. */
  #isQueued = false;
  /** Handed to the kernel past the writable side, and not taken yet. */
  #directBytes = 0;
  /** Long output that has not begun to leave, and what was written behind it; only with a pace. */
  readonly #rest = new WaitingOutput();
  /** The last turn in which something was written, and how much. */
  #turnNumber = -1;
  #turnBytes = 0;
  /** The last frame needs a record of TLS of its own: all waits for the end of a turn. */
  #isLastFrameApart = false;
  /** A write of TLS is under way. */
  #isEncrypting = false;
  #isEnding = false;

  /**
   * @param pace how much leaves in a turn; null: as much as there is
   * @param onDrain the kernel has all that it did not take at once
   */
  constructor(socket: Socket, turn: Turn, isSecure: boolean, pace: WritePace | null, onDrain: () => void) {
    this.#socket = socket;
    this.#turn = turn;
    this.#isSecure = isSecure;
    this.#pace = pace;
    this.#onDrain = onDrain;
  }

  get queuedBytes(): number {
    return this.#isQueued ? this.#directBytes + this.#rest.bytes + this.#socket.writableLength : 0;
  }

  setLastFrameApart(): void {
    this.#isLastFrameApart = true;
    this.#rest.setLastFrameApart();
  }

  /**
   * Bytes go to the kernel past the writable side of Node's stream while nothing waits there, which is nearly always. Its
   * bookkeeping, and a tick after each write, would be a twentieth of what it costs to tell a watcher.
   *
   * When the kernel does not take all of them, the rest waits in the handle, and what follows goes the usual way, which
   * keeps the order: the handle has one queue.
   */
  write(bytes: Uint8Array): void {
    if (this.#isEnding || bytes.length === 0) return;
    if (this.#pace !== null && (this.#isLastFrameApart || this.#isLong(bytes.length) || this.#rest.bytes > 0)) {
      this.#keep(bytes);
      return;
    }
    if (this.#isSecure) {
      this.#writeSecure(bytes);
      return;
    }
    if (this.#isQueued) {
      if (!this.#socket.destroyed) this.#socket.write(bytes);
      return;
    }
    this.#directBytes = bytes.length;
    this.#socket._write(bytes, UNENCODED, this.#onDirectWritten);
    this.#isQueued = this.#directBytes > 0;
  }

  /**
   * Node.js takes one write at a time and encrypts or copies it before it returns, so that the memory is free again at
   * once. It tells that the kernel has the bytes in a later turn only: meanwhile a first write counts as gone, and what
   * comes behind it as queued.
   */
  #writeSecure(bytes: Uint8Array): void {
    if (this.#socket.destroyed) return;
    if (this.#isEncrypting) {
      this.#isQueued = true;
      this.#socket.write(bytes);
      return;
    }
    this.#isEncrypting = true;
    this.#socket.write(bytes, this.#onEncrypted);
  }

  readonly #onEncrypted = (error?: Error | null): void => {
    this.#isEncrypting = false;
    if (error) return;
    if (this.#isQueued) this.#onWritten();
  };

  /** Whether it writes more in this turn, with so many bytes, than goes to the kernel at once. */
  #isLong(bytes: number): boolean {
    const { number } = this.#turn;
    if (this.#turnNumber !== number) {
      this.#turnNumber = number;
      this.#turnBytes = 0;
    }
    this.#turnBytes += bytes;
    return this.#turnBytes > AT_ONCE_BYTES_MAX;
  }

  /** Long output leaves in pieces, at the ends of turns, and what comes behind it, too. */
  #keep(bytes: Uint8Array): void {
    this.#rest.push(bytes);
    if (!this.#isQueued && !this.#isEncrypting) this.#waitForTurn();
    this.#isQueued = true;
  }

  #waitForTurn(): void {
    this.#pace!.wait(this);
    this.#turn.mark();
  }

  writePiece(): number {
    const socket = this.#socket;
    if (this.#isEnding || socket.destroyed) return 0;
    const piece = this.#rest.take();
    if (this.#isSecure) {
      this.#isEncrypting = true;
      socket.write(piece, this.#onEncrypted);
    } else {
      this.#directBytes = piece.length;
      socket._write(piece, UNENCODED, this.#onDirectWritten);
    }
    return piece.length;
  }

  /** Nothing more is written. What waits for its turn does so no longer. */
  end(): void {
    this.#isEnding = true;
    for (const bytes of this.#rest.takeAll()) if (!this.#socket.destroyed) this.#socket.write(bytes);
  }

  /** Nothing more leaves. */
  drop(): void {
    this.#isEnding = true;
  }

  /** Called before `_write` returns when the kernel takes everything. */
  readonly #onDirectWritten = (error?: Error | null): void => {
    this.#directBytes = 0;
    if (error) this.#socket.destroy(error);
    else if (this.#isQueued) this.#onWritten();
  };

  readonly #onWritten = (error?: Error | null): void => {
    // An ending stream reports only its close.
    if (error || this.#isEnding || this.#turn.isStopped) return;
    if (this.#turn.isFrozen) {
      this.#turn.postpone(this.#onWritten);
      return;
    }
    if (this.#socket.writableLength > 0) {
      this.#socket.write(NOTHING, this.#onWritten);
      return;
    }
    if (this.#rest.bytes > 0) {
      this.#waitForTurn();
      return;
    }
    this.#isQueued = false;
    this.#onDrain();
  };
}

const NOTHING = new Uint8Array(0);
/** What the writable side calls the encoding of bytes; the types of Node know those of strings only. */
const UNENCODED = 'buffer' as BufferEncoding;
