import type { Socket } from 'node:net';
import type { ByteStream, PeerAddress, PeerCertificate, StreamEvents } from '@meerkat/core';
import { parseIp } from '../auth/ip-address.ts';
import { type ConnectionShare, UNLIMITED_SHARE } from './descriptors.ts';
import type { DialledReads } from './dialled-reads.ts';
import { SocketOutput } from './socket-output.ts';
import type { Turn } from './turn.ts';
import type { WritePace } from './write-pace.ts';

/** Counts what arrives on all connections. */
export interface Traffic {
  onBytesReceived(bytes: number): void;
}

/** What is known of the peer from its TLS handshake. */
export interface Secured {
  /** Null when it has shown none. */
  readonly certificate: PeerCertificate | null;
  /** See `ByteStream`; left out: null. */
  readonly certifiedHosts?: readonly string[] | null;
}

/** One socket as a stream of bytes. */
export class SocketStream implements ByteStream {
  readonly remote: PeerAddress;
  readonly isCrowding: boolean;
  readonly #secured: Secured | null;
  readonly #share: ConnectionShare;
  readonly #socket: Socket;
  readonly #turn: Turn;
  readonly #traffic: Traffic;
  #events: StreamEvents | null = null;
  readonly #output: SocketOutput;
  readonly #reads: DialledReads | null;
  readonly #isOfClient: boolean;
  /** No byte has come yet. */
  #isFresh = true;
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
    this.#secured = secured;
    this.#share = share;
    this.#isOfClient = pace !== null;
    this.#output = new SocketOutput(socket, turn, secured !== null, pace, () => this.#onDrain());
    this.#reads = reads;
    if (reads !== null) reads.receiver = this.#onChunk;
    socket.once('close', () => share.close(this));
    this.#socket = socket;
    this.#turn = turn;
    this.#traffic = traffic;
    this.remote = addressOf(socket);
  }

  get isSecure(): boolean {
    return this.#secured !== null;
  }

  get certificate(): PeerCertificate | null {
    return this.#secured?.certificate ?? null;
  }

  get certifiedHosts(): readonly string[] | null {
    return this.#secured?.certifiedHosts ?? null;
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
   * order; so would everything if Node no longer called `push`.
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
    return this.#output.queuedBytes;
  }

  write(bytes: Uint8Array): void {
    this.#output.write(bytes);
  }

  end(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    // Reading continues, and input is discarded: with unread input the kernel would reset the connection, and the
    // answer that is on its way would be lost.
    this.#output.end();
    this.#socket.end();
    this.#socket.resume();
    this.linger();
  }

  /** Closes once what was written has left: the peer has closed its own end, and nothing more comes for it. */
  finish(): void {
    this.#isEnding = true;
    this.#output.end();
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
    this.#output.drop();
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
      if (this.isSecure && this.#isOfClient && isOfCClient(chunk)) this.#output.setLastFrameApart();
    }
    this.#traffic.onBytesReceived(chunk.length);
    if (this.#isOfClient) this.#turn.clients.touch(this);
    try {
      this.#events?.onBytes(chunk);
    } catch (error) {
      this.#turn.fail(error);
    }
    this.#turn.mark();
  };

  #onDrain(): void {
    try {
      this.#events?.onDrain();
    } catch (error) {
      this.#turn.fail(error);
    }
    this.#turn.mark();
  }

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
 * Recognizes Apache's C client, the only known one that writes the length of its connect request in a TLS record of its
 * own. It reads one frame each time the kernel has bytes for it, and does not ask OpenSSL what else the last record
 * held: a second frame in the last record would wait until the server sends more, and the client would drop the
 * connection before that. So the last frame sent to it gets a record of its own. Frames before it need none: that
 * record is in the kernel, or on its way, until they have been read.
 *
 * @param chunk the first one: Node.js emits each record separately, and a four-letter word begins with a letter
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
