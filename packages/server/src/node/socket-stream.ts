import type { Socket } from 'node:net';
import type { ByteStream, PeerAddress, PeerCertificate, StreamEvents } from '@meerkat/core';
import { parseIp } from '../auth/ip-address.ts';
import { type ConnectionShare, UNLIMITED_SHARE } from './descriptors.ts';
import type { DialledReads } from './dialled-reads.ts';
import type { Turn } from './turn.ts';
import { WaitingOutput } from './waiting-output.ts';
import { AT_ONCE_BYTES_MAX, type PacedWriter, type WritePace } from './write-pace.ts';

/** Counts what arrives on all connections. */
export interface Traffic {
  onBytesReceived(bytes: number): void;
}

/** What a TLS handshake has told about the peer. */
export interface Secured {
  /** Null when it has shown none. */
  readonly certificate: PeerCertificate | null;
  /** See `ByteStream`; left out: null. */
  readonly certifiedHosts?: readonly string[] | null;
}

/** One socket as a stream of bytes. */
export class SocketStream implements ByteStream, PacedWriter {
  readonly remote: PeerAddress;
  readonly isCrowding: boolean;
  readonly certificate: PeerCertificate | null;
  readonly certifiedHosts: readonly string[] | null;
  readonly isSecure: boolean;
  readonly #share: ConnectionShare;
  readonly #socket: Socket;
  readonly #turn: Turn;
  readonly #traffic: Traffic;
  #events: StreamEvents | null = null;
  /** The kernel did not take everything at once: `onDrain` is owed. */
  #isQueued = false;
  /** Handed to the kernel past the writable side, and not taken yet. */
  #directBytes = 0;
  readonly #pace: WritePace | null;
  readonly #reads: DialledReads | null;
  /** Long output that has not begun to leave, and what was written behind it; only with a pace. */
  readonly #rest = new WaitingOutput();
  /** The last turn in which something was written, and how much. */
  #turnNumber = -1;
  #turnBytes = 0;
  /** No byte has come yet. */
  #isFresh = true;
  /** The peer is the C client: see `isOfCClient`. All that it is sent waits for the end of a turn. */
  #isFrameApart = false;
  /** A write of TLS is under way. */
  #isEncrypting = false;
  #isEnding = false;
  #isLingering = false;
  /** The core wants to read nothing now. */
  #isPaused = false;
  #closeReason = 'closed by this server';

  /**
   * @param share of the port that has accepted it; left out, it counts nowhere
   * @param secured of a socket of TLS whose handshake is done
   * @param pace how much leaves in a turn; null: as much as there is, to another server
   * @param reads of a socket that was made with them
   */
  constructor(
    socket: Socket,
    turn: Turn,
    traffic: Traffic,
    share: ConnectionShare = UNLIMITED_SHARE,
    secured: Secured | null = null,
    pace: WritePace | null = null,
    reads: DialledReads | null = null,
  ) {
    this.isCrowding = share.open();
    this.certificate = secured?.certificate ?? null;
    this.certifiedHosts = secured?.certifiedHosts ?? null;
    this.isSecure = secured !== null;
    this.#share = share;
    this.#pace = pace;
    this.#reads = reads;
    if (reads !== null) reads.receiver = this.#onChunk;
    socket.once('close', () => share.close(this));
    this.#socket = socket;
    this.#turn = turn;
    this.#traffic = traffic;
    this.remote = addressOf(socket);
  }

  open(onStream: (stream: ByteStream) => StreamEvents): void {
    const socket = this.#socket;
    socket.on('data', this.#onData);
    this.#shortenReading();
    socket.on('end', this.#onEnd);
    socket.on('error', (error: NodeJS.ErrnoException) => {
      this.#closeReason = error.code === 'ECONNRESET' ? 'reset by peer' : (error.code ?? error.message);
    });
    socket.on('close', this.#onClose);
    if (this.#turn.isFrozen) {
      this.freeze();
      this.#turn.postpone(() => this.#accept(onStream));
    } else {
      this.#accept(onStream);
    }
  }

  /**
   * Takes a chunk where Node hands it to the readable side, when all that would follow is 'data': the socket is flowing
   * and holds nothing. Going through the readable side costs an event, a tick and a read(0) for each chunk, 1 of the
   * 8 µs of user time that an event and the next watch take in the bench's fan-out.
   *
   * What is not taken here, chunks that come while paused and the end of the stream, goes the usual way and arrives in
   * its order; so would everything if Node did not call `push` any more.
   */
  #shortenReading(): void {
    const socket = this.#socket;
    const push = socket.push;
    socket.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
      const isEmitted = socket.readableFlowing === true && socket.readableLength === 0;
      if (!isEmitted || !Buffer.isBuffer(chunk)) return push.call(socket, chunk, encoding);
      this.#onData(chunk);
      return true;
    };
  }

  #accept(onStream: (stream: ByteStream) => StreamEvents): void {
    if (this.#socket.destroyed) return;
    try {
      this.#events = onStream(this);
    } catch (error) {
      this.#socket.destroy();
      this.#turn.fail(error);
    }
    this.#turn.mark();
  }

  get closed(): Promise<unknown> {
    return new Promise((resolve) => this.#socket.once('close', resolve));
  }

  freeze(): void {
    this.#socket.pause();
  }

  thaw(): void {
    if (!this.#isPaused || this.#isEnding) this.#socket.resume();
  }

  get queuedBytes(): number {
    return this.#isQueued ? this.#directBytes + this.#rest.bytes + this.#socket.writableLength : 0;
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
    if (this.#pace !== null && (this.#isFrameApart || this.#isLong(bytes.length) || this.#rest.bytes > 0)) {
      this.#keep(bytes);
      return;
    }
    if (this.isSecure) {
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
    if (this.isSecure) {
      this.#isEncrypting = true;
      socket.write(piece, this.#onEncrypted);
    } else {
      this.#directBytes = piece.length;
      socket._write(piece, UNENCODED, this.#onDirectWritten);
    }
    return piece.length;
  }

  /** What waits for its turn does so no longer. */
  #handOverRest(): void {
    for (const bytes of this.#rest.takeAll()) if (!this.#socket.destroyed) this.#socket.write(bytes);
  }

  end(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    // Reading goes on, and what comes is dropped: unread input would make the kernel reset the connection and with it
    // the answer that is on its way.
    this.#handOverRest();
    this.#socket.end();
    this.#socket.resume();
    this.linger();
  }

  /** Closes once what was written has left: the peer has closed its own end, and nothing more comes for it. */
  finish(): void {
    this.#isEnding = true;
    this.#handOverRest();
    this.#socket.destroySoon();
    this.linger();
  }

  /** Nothing more is to be done but to wait for the peer: one that never reads or closes would keep the descriptor. */
  linger(): void {
    const socket = this.#socket;
    if (this.#isLingering || socket.destroyed) return;
    this.#isLingering = true;
    this.#share.linger(this);
    const timer = setTimeout(() => socket.destroy(), LINGER_MS);
    timer.unref();
    socket.once('close', () => clearTimeout(timer));
  }

  destroy(): void {
    this.#isEnding = true;
    this.#socket.destroy();
  }

  pause(): void {
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#socket.resume();
  }

  readInto(room: () => Uint8Array): void {
    if (this.#reads !== null) this.#reads.room = room;
  }

  /** A plain array of bytes, so that the core sees one kind of object everywhere. */
  readonly #onData = (chunk: Buffer): void =>
    this.#onChunk(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length));

  readonly #onChunk = (chunk: Uint8Array): void => {
    if (this.#isEnding || this.#turn.isStopped) return;
    if (this.#isFresh) {
      this.#isFresh = false;
      if (this.isSecure && this.#pace !== null && isOfCClient(chunk)) {
        this.#isFrameApart = true;
        this.#rest.setLastFrameApart();
      }
    }
    this.#traffic.onBytesReceived(chunk.length);
    if (this.#pace !== null) this.#turn.clients.onHeard(this);
    try {
      this.#events?.onBytes(chunk);
    } catch (error) {
      this.#turn.fail(error);
    }
    this.#turn.mark();
  };

  /** Called before `_write` returns when the kernel takes everything. */
  readonly #onDirectWritten = (error?: Error | null): void => {
    this.#directBytes = 0;
    if (error) this.#socket.destroy(error);
    else if (this.#isQueued) this.#onWritten();
  };

  readonly #onWritten = (error?: Error | null): void => {
    // Whoever ends the stream waits for nothing but its close.
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
    try {
      this.#events?.onDrain();
    } catch (error) {
      this.#turn.fail(error);
    }
    this.#turn.mark();
  };

  /** The peer sends nothing more. What this turn answers to its last bytes still leaves, and a long answer until its end. */
  readonly #onEnd = (): void => {
    if (!this.#isEnding) this.#closeReason = 'closed by peer';
    setImmediate(() => {
      if (this.#events?.isAnswering === true) {
        this.#events.onHalfClosed?.();
        this.#turn.mark();
      } else this.finish();
    });
  };

  readonly #onClose = (): void => {
    if (this.#turn.isStopped) return;
    if (this.#turn.isFrozen) {
      this.#turn.postpone(this.#onClose);
      return;
    }
    const events = this.#events;
    this.#events = null;
    try {
      events?.onClosed(this.#closeReason);
    } catch (error) {
      this.#turn.fail(error);
    }
    this.#turn.mark();
  };
}

/**
 * Apache's C client writes the length of its connect request in a TLS record of its own, and nobody else is known to. It
 * reads one frame each time that the kernel has bytes for it, and does not ask OpenSSL what else the last record held: a
 * frame behind another one in the last record would wait until the server sends more, and the connection be given up
 * before that. So the last frame that it is sent gets a record of its own. Frames before it need none: that record is
 * in the kernel, or on its way, until they have been read.
 *
 * @param chunk the first one: Node.js gives out each record by itself, and a four-letter word begins with a letter
 */
function isOfCClient(chunk: Uint8Array): boolean {
  return chunk.length === 4 && chunk[0] === 0;
}

/** Where the other end of a socket is; all zeros when it is closed already. */
export function addressOf({ remoteAddress: host = '0.0.0.0', remotePort = 0 }: Socket): PeerAddress {
  const ip = parseIp(host) ?? new Uint8Array(4);
  return { ip, host: ip.length === 4 ? ip.join('.') : host, port: remotePort };
}

/** Milliseconds that a peer may take to read what was sent before the end, and to close its own end. */
const LINGER_MS = 10_000;
const NOTHING = new Uint8Array(0);
/** What the writable side calls the encoding of bytes; the types of Node know those of strings only. */
const UNENCODED = 'buffer' as BufferEncoding;
