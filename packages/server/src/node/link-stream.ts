import type { ByteStream, PeerAddress, StreamEvents } from '@meerkat/core';

/**
 * The dialing end of a stream between two servers, which can be cut like a network: without notice, nothing passes in
 * either direction, not even the end of the stream, and everything waits.
 *
 *     server ── write, end, destroy ──► LinkStream ──► socket      while cut: kept here until heal
 *     server ◄── onBytes, onClosed ──── LinkStream ◄── socket      while cut: left unread in the kernel until heal
 *
 * The accepting end needs none: its bytes and its close are not read here, and what is sent to it is kept here.
 */
export class LinkStream implements ByteStream, StreamEvents {
  readonly #socket: ByteStream;
  readonly #deliver: (event: () => void) => void;
  readonly #onGone: () => void;
  /** Null once it was notified that the stream is closed. */
  #owner: StreamEvents | null = null;
  #isCut = false;
  #isOwnerPaused = false;
  /** Written while cut. */
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  /** What was on its way up when the link was cut, in its order. */
  #arrived: Uint8Array[] = [];
  /** Why the socket has closed while cut. */
  #closeReason: string | null = null;
  /** What the owner has asked for while cut. */
  #owed: 'nothing' | 'end' | 'destroy' = 'nothing';

  /**
   * @param deliver runs an event of the server
   * @param onGone called once this link is finished
   */
  constructor(socket: ByteStream, deliver: (event: () => void) => void, onGone: () => void) {
    this.#socket = socket;
    this.#deliver = deliver;
    this.#onGone = onGone;
  }

  /** Hands the stream to its owner, and delivers its events from then on. */
  open(onStream: (stream: ByteStream) => StreamEvents): void {
    this.#owner = onStream(this);
  }

  cut(): void {
    if (this.#isCut) return;
    this.#isCut = true;
    this.#socket.pause();
  }

  /** Delivers what has waited: at once, or when a paused server is resumed. */
  heal(): void {
    if (!this.#isCut) return;
    this.#isCut = false;
    this.#deliver(() => {
      if (!this.#isCut) this.#passOn();
    });
  }

  /* -------------------------------------------------------------------------------------- asked by the server ---- */

  get remote(): PeerAddress {
    return this.#socket.remote;
  }

  get queuedBytes(): number {
    return this.#socket.queuedBytes + this.#heldBytes;
  }

  write(bytes: Uint8Array): void {
    if (!this.#isCut) {
      this.#socket.write(bytes);
    } else if (this.#owed === 'nothing') {
      // Not copied: until onDrain the bytes are the stream's.
      this.#held.push(bytes);
      this.#heldBytes += bytes.length;
    }
  }

  end(): void {
    if (!this.#isCut) this.#socket.end();
    else if (this.#owed === 'nothing') this.#owed = 'end';
  }

  destroy(): void {
    if (!this.#isCut) {
      this.#socket.destroy();
      return;
    }
    this.#owed = 'destroy';
    this.#dropHeld();
    // The other end learns of it after heal; this end is notified already.
    setImmediate(() => this.#deliver(() => this.#reportClosed('closed by this server')));
  }

  pause(): void {
    this.#isOwnerPaused = true;
    if (!this.#isCut) this.#socket.pause();
  }

  resume(): void {
    this.#isOwnerPaused = false;
    if (!this.#isCut) this.#socket.resume();
  }

  /* ---------------------------------------------------------------------------------------- told by the socket ---- */

  onBytes(chunk: Uint8Array): void {
    if (this.#isCut) this.#arrived.push(chunk);
    else this.#owner?.onBytes(chunk);
  }

  onDrain(): void {
    if (this.#heldBytes === 0) this.#owner?.onDrain();
  }

  onClosed(reason: string): void {
    if (this.#isCut && this.#owed !== 'destroy') {
      this.#closeReason = reason;
      return;
    }
    this.#reportClosed(reason);
    this.#onGone();
  }

  #passOn(): void {
    if (this.#owed === 'destroy') {
      this.#socket.destroy();
      return;
    }
    for (const chunk of this.#arrived.splice(0)) this.#owner?.onBytes(chunk);
    if (this.#closeReason !== null) {
      this.#reportClosed(this.#closeReason);
      this.#onGone();
      return;
    }
    const hasHeld = this.#heldBytes > 0;
    for (const bytes of this.#held) this.#socket.write(bytes);
    this.#dropHeld();
    if (hasHeld && this.#socket.queuedBytes === 0) this.#owner?.onDrain();
    if (this.#owed === 'end') this.#socket.end();
    else if (!this.#isOwnerPaused) this.#socket.resume();
  }

  #dropHeld(): void {
    this.#held = [];
    this.#heldBytes = 0;
  }

  #reportClosed(reason: string): void {
    const owner = this.#owner;
    this.#owner = null;
    owner?.onClosed(reason);
  }
}
