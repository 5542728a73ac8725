import type { Socket } from 'node:net';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import type { ConnectionShare } from '../node/descriptors.ts';
import { CLOSED_BY_PEER, describeHandshakeError, describeVerifyError } from './handshake-faults.ts';
import type { TlsSettings } from './tls-settings.ts';

/** What becomes of the connections of a port. */
export interface HandshakeEvents {
  /** Its first byte is not TLS; its input is still unread. Omitted: such connections are closed. */
  onPlain?(socket: Socket): void;
  /** The handshake is done. `certificate`, in DER, is null when the peer presented none; otherwise it was verified. */
  onSecure(socket: TLSSocket, certificate: Uint8Array | null): void;
  /** It was closed. `isAuthentication`: because of its certificate. */
  onFailed(socket: Socket, reason: string, isAuthentication: boolean): void;
  /** It was closed before its handshake began, because there are too many. */
  onExceeded(socket: Socket, reason: string): void;
}

/**
 * The handshakes of one port.
 *
 *     accepted ──first byte──► queued ──a turn with time left──► under way ──► secure
 *        │                        │                                  │
 *        └── deadline, too many ──┴── too many ── deadline, too many ┴──► closed
 *
 * A handshake costs this server a signature, a millisecond with RSA, and the peer nothing. So:
 *
 * 1. Nothing is computed for a connection that has sent nothing.
 * 2. A turn of the event loop starts handshakes for `BUDGET_MS` and then serves everything else. The queue is served
 *    round robin by address. Handshakes under way do not count against the queue: a peer that stalls in the middle of
 *    its handshake delays no other one.
 * 3. Of those under way, `READING_MAX` are read from in a turn; once one of them is done, the others wait for the next
 *    turn: a thousand peers may send the end of their handshakes at once.
 * 4. The number of pending connections is bounded, per address and in total. For one more, the address with the most
 *    loses its oldest, first among those that have sent nothing; the newcomer is closed if it is from that address and
 *    all have sent something.
 * 5. A peer has `handshakeTimeoutMs` from the accept to its first byte, and as much again from the start of its
 *    handshake. The time in the queue does not count.
 */
export class Handshakes {
  readonly #events: HandshakeEvents;
  readonly #server: Server;
  readonly #perHostMax: number;
  #settings: TlsSettings;
  /** By the raw socket; the oldest first. */
  readonly #pending = new Map<Socket, Pending>();
  /** Of them, those that have sent nothing; the oldest first. */
  readonly #silent = new Set<Pending>();
  readonly #countOfHost = new Map<string, number>();
  /** Those under way, by `address port` of the peer, which both sockets have; the oldest first. */
  readonly #underWay = new Map<string, Pending>();
  /** Those that have sent something, by host; a host goes to the end when it has had a turn. */
  readonly #queued = new Map<string, Pending[]>();
  /** Of those under way, those that are read from. */
  readonly #reading = new Set<Pending>();
  /** The others, in the order in which they are read from. */
  readonly #parked = new Set<Pending>();
  #rotation: NodeJS.Timeout | null = null;
  #isPumping = false;
  #isFrozen = false;
  #timer: NodeJS.Timeout | null = null;

  /** @param perHostMax per address; 0 = only the total limit */
  constructor(settings: TlsSettings, perHostMax: number, events: HandshakeEvents) {
    this.#settings = settings;
    this.#events = events;
    this.#perHostMax = perHostMax === 0 ? settings.options.handshakesMax : perHostMax;
    const { clientAuth, handshakeTimeoutMs } = settings.options;
    this.#server = createServer({
      ...settings.contextOptions,
      requestCert: clientAuth !== 'none',
      // OpenSSL tells a peer without a certificate why it is refused; all else is checked here.
      rejectUnauthorized: clientAuth === 'need',
      // Our timeout fires first: on its own Node.js only emits an error, and leaves the connection open.
      handshakeTimeout: 2 * handshakeTimeoutMs,
    });
    this.#server.on('secureConnection', (socket) => this.#onSecure(socket));
    this.#server.on('tlsClientError', (error, socket) => this.#onError(error, socket));
  }

  /** Of connections that are there and not secure yet. */
  get count(): number {
    return this.#pending.size;
  }

  /** What connections from now on are shown, and checked against. */
  renew(settings: TlsSettings): void {
    this.#settings = settings;
    this.#server.setSecureContext(settings.contextOptions);
  }

  /** @param share in which it counts until its handshake is done; then the caller counts it as an open connection */
  accept(socket: Socket, share: ConnectionShare): void {
    const host = socket.remoteAddress;
    if (host === undefined || socket.destroyed) {
      socket.destroy();
      return;
    }
    if (!this.#makeRoom(socket, host, share)) return;
    const pending: Pending = {
      socket,
      host,
      place: `${host} ${socket.remotePort}`,
      sinceMs: performance.now(),
      share,
      handle: (socket as { _handle?: ReadHandle | null })._handle ?? null,
      times: 0,
      hasHadTurn: false,
    };
    share.open();
    this.#pending.set(socket, pending);
    this.#silent.add(pending);
    this.#countOfHost.set(host, (this.#countOfHost.get(host) ?? 0) + 1);
    socket.on('error', IGNORE);
    socket.once('close', () => this.#onRawClosed(pending));
    socket.once('data', (chunk) => this.#onFirstBytes(pending, chunk));
    if (this.#isFrozen) socket.pause();
    this.#armTimer();
  }

  /** Begins nothing more until `thaw`: what is sent waits. */
  freeze(): void {
    this.#isFrozen = true;
    for (const { socket } of this.#silent) socket.pause();
  }

  thaw(): void {
    this.#isFrozen = false;
    for (const { socket } of this.#silent) socket.resume();
    this.#pump();
  }

  destroyAll(): void {
    for (const socket of this.#pending.keys()) socket.destroy();
    for (const timer of [this.#timer, this.#rotation]) if (timer !== null) clearTimeout(timer);
    this.#timer = null;
    this.#rotation = null;
  }

  /** @returns false when the newcomer had to go */
  #makeRoom(socket: Socket, host: string, share: ConnectionShare): boolean {
    const { handshakesMax } = this.#settings.options;
    const ofHost = this.#countOfHost.get(host) ?? 0;
    const isHostFull = ofHost >= this.#perHostMax;
    const isFull = this.#pending.size >= handshakesMax;
    if (!isHostFull && !isFull && (share.count < share.max || this.#pending.size === 0)) return true;
    const reason = isHostFull
      ? `${ofHost} connections from its address have not finished their TLS handshake, as many as one may have`
      : isFull
        ? `${this.#pending.size} connections have not finished their TLS handshake, as many as a port may have`
        : 'descriptors run short, and its TLS handshake is not done';
    const crowded = isHostFull ? host : this.#crowdedHost();
    const evicted = this.#findSilent(crowded) ?? (crowded === host ? null : this.#findOldest(crowded));
    const victim = evicted?.socket ?? socket;
    this.#events.onExceeded(victim, reason);
    if (evicted !== null) this.#forget(evicted);
    victim.destroy();
    return victim !== socket;
  }

  #crowdedHost(): string {
    let crowded = '';
    let most = 0;
    for (const [host, count] of this.#countOfHost) {
      if (count <= most) continue;
      crowded = host;
      most = count;
    }
    return crowded;
  }

  #findSilent(host: string): Pending | null {
    for (const pending of this.#silent) if (pending.host === host) return pending;
    return null;
  }

  #findOldest(host: string): Pending | null {
    for (const pending of this.#pending.values()) if (pending.host === host) return pending;
    return null;
  }

  #onFirstBytes(pending: Pending, chunk: Buffer): void {
    const { socket, host } = pending;
    if (!this.#pending.has(socket)) return;
    socket.pause();
    socket.unshift(chunk);
    if (chunk[0] === HANDSHAKE_RECORD) {
      this.#silent.delete(pending);
      const others = this.#queued.get(host);
      if (others === undefined) this.#queued.set(host, [pending]);
      else others.push(pending);
      this.#pump();
      return;
    }
    if (this.#events.onPlain === undefined) {
      this.#fail(pending, 'it does not speak TLS, and this port takes nothing else', false);
      return;
    }
    this.#forget(pending);
    socket.off('error', IGNORE);
    socket.resume();
    this.#events.onPlain(socket);
  }

  #pump(): void {
    if (this.#isPumping || this.#isFrozen || this.#queued.size === 0) return;
    this.#isPumping = true;
    setImmediate(this.#onTurn);
  }

  readonly #onTurn = (): void => {
    const endMs = performance.now() + BUDGET_MS;
    const next = (): void => {
      if (performance.now() < endMs && this.#beginNext()) {
        // Node.js gives the first bytes to OpenSSL in a tick, which comes before this one.
        process.nextTick(next);
        return;
      }
      this.#isPumping = false;
      this.#pump();
    };
    next();
  };

  /** @returns false when none waits */
  #beginNext(): boolean {
    if (this.#isFrozen) return false;
    for (const [host, waiting] of this.#queued) {
      const pending = waiting.shift();
      this.#queued.delete(host);
      if (waiting.length > 0) this.#queued.set(host, waiting);
      if (pending === undefined || !this.#pending.has(pending.socket)) continue;
      pending.sinceMs = performance.now();
      this.#underWay.set(pending.place, pending);
      this.#armTimer();
      // A peer that ends its side before the handshake is done is gone; afterwards it may still read.
      pending.socket.allowHalfOpen = false;
      this.#server.emit('connection', pending.socket);
      // It may have failed at once.
      if (!this.#pending.has(pending.socket)) return true;
      if (this.#reading.size < READING_MAX) this.#read(pending);
      else this.#park(pending);
      return true;
    }
    return false;
  }

  #park(pending: Pending): void {
    this.#reading.delete(pending);
    pending.handle?.readStop();
    this.#parked.add(pending);
    this.#rotation ??= setTimeout(this.#rotate, 1);
  }

  /** Those that were read from for a turn of the event loop give their places to others: what they had sent by then was taken. */
  readonly #rotate = (): void => {
    this.#rotation = null;
    const served = [...this.#reading].filter(({ hasHadTurn }) => hasHadTurn);
    const next = firstOf(this.#parked, READING_MAX - this.#reading.size + served.length);
    const surplus = this.#reading.size + next.length - READING_MAX;
    for (const pending of firstOf(served, surplus)) this.#park(pending);
    for (const pending of next) {
      this.#parked.delete(pending);
      this.#read(pending);
    }
    if (this.#parked.size > 0) this.#rotation ??= setTimeout(this.#rotate, 1);
  };

  /**
   * Reads from the next turn on. Node.js counts what it writes as written at the end of a turn, and sends no alert before
   * that: a peer that answers the first flight in the same turn would not be told why it is refused.
   */
  #read(pending: Pending): void {
    this.#reading.add(pending);
    pending.handle?.readStop();
    pending.hasHadTurn = false;
    const time = ++pending.times;
    setImmediate(() => {
      if (pending.times !== time || !this.#reading.has(pending)) return;
      pending.handle?.readStart();
      // Timers may come before the turn in which it is read from, always so while each turn begins handshakes.
      setImmediate(() => {
        if (pending.times === time) pending.hasHadTurn = true;
      });
    });
  }

  /** One is done: the others do not continue in this turn, even if the kernel has input for them. */
  #holdOthers(): void {
    for (const other of this.#reading) this.#read(other);
  }

  #onSecure(secure: TLSSocket): void {
    const pending = this.#take(secure);
    if (pending === null) {
      secure.destroy();
      return;
    }
    const { clientAuth } = this.#settings.options;
    const certificate = clientAuth === 'none' ? null : shownBy(secure);
    if (certificate !== null && !secure.authorized) {
      this.#events.onFailed(secure, describeVerifyError(secure.authorizationError), true);
      secure.destroy();
      return;
    }
    secure.allowHalfOpen = true;
    secure.disableRenegotiation();
    this.#events.onSecure(secure, certificate);
  }

  #onError(error: NodeJS.ErrnoException, secure: TLSSocket): void {
    const pending = this.#take(secure);
    if (pending === null) return;
    if (error.code === 'ERR_TLS_HANDSHAKE_TIMEOUT') pending.socket.destroy();
    const { authorizationError } = secure;
    // Node.js has destroyed it already, or is about to.
    if (authorizationError != null)
      this.#events.onFailed(pending.socket, describeVerifyError(authorizationError), true);
    else this.#events.onFailed(pending.socket, describeHandshakeError(error), /CERTIFICATE/i.test(error.code ?? ''));
  }

  /** The peer is gone, or a certificate is refused, which Node.js reports after this. */
  #onRawClosed(pending: Pending): void {
    if (this.#underWay.get(pending.place) === pending) setImmediate(() => this.#onGone(pending));
    else this.#forget(pending);
  }

  #onGone(pending: Pending): void {
    if (this.#pending.has(pending.socket)) this.#fail(pending, CLOSED_BY_PEER, false);
  }

  #take(secure: TLSSocket): Pending | null {
    // The socket that Node.js has wrapped; a closed socket no longer has an address.
    const { _parent: raw } = secure as { _parent?: Socket };
    const place = `${secure.remoteAddress} ${secure.remotePort}`;
    const pending = (raw === undefined ? undefined : this.#pending.get(raw)) ?? this.#underWay.get(place) ?? null;
    if (pending === null) return null;
    this.#forget(pending);
    this.#holdOthers();
    return pending;
  }

  #fail(pending: Pending, reason: string, isAuthentication: boolean): void {
    this.#events.onFailed(pending.socket, reason, isAuthentication);
    this.#forget(pending);
    pending.socket.destroy();
  }

  #forget(pending: Pending): void {
    if (!this.#pending.delete(pending.socket)) return;
    pending.share.close(pending.socket);
    this.#silent.delete(pending);
    const { host, place } = pending;
    if (this.#underWay.get(place) === pending) this.#underWay.delete(place);
    this.#reading.delete(pending);
    this.#parked.delete(pending);
    const count = (this.#countOfHost.get(host) ?? 1) - 1;
    if (count === 0) this.#countOfHost.delete(host);
    else this.#countOfHost.set(host, count);
    this.#pump();
  }

  #armTimer(): void {
    if (this.#timer !== null) return;
    const [silent] = this.#silent;
    const [begun] = this.#underWay.values();
    const oldest = silent === undefined || (begun !== undefined && begun.sinceMs < silent.sinceMs) ? begun : silent;
    if (oldest === undefined) return;
    const endMs = oldest.sinceMs + this.#settings.options.handshakeTimeoutMs;
    this.#timer = setTimeout(() => this.#onTimer(), Math.max(1, endMs - performance.now() + 1));
    this.#timer.unref();
  }

  #onTimer(): void {
    this.#timer = null;
    const { handshakeTimeoutMs } = this.#settings.options;
    const beganMs = performance.now() - handshakeTimeoutMs;
    for (const all of [this.#silent, this.#underWay.values()]) {
      for (const pending of all) {
        if (pending.sinceMs > beganMs) break;
        this.#fail(pending, `it did not finish its TLS handshake within ${handshakeTimeoutMs} ms`, false);
      }
    }
    this.#armTimer();
  }
}

/**
 * In DER. What an `X509Certificate` has outside the heap is freed by the garbage collection, hundreds of them in one pause:
 * two thirds of its length during a thousand handshakes.
 */
function shownBy(secure: TLSSocket): Uint8Array | null {
  // The types omit that a peer may have presented none, or be gone.
  const shown = secure.getPeerCertificate() as { readonly raw?: Uint8Array } | null;
  return shown?.raw ?? null;
}

/** A connection that is not secure yet. */
interface Pending {
  readonly socket: Socket;
  readonly host: string;
  readonly place: string;
  /** When it was accepted, or its handshake has begun. */
  sinceMs: number;
  readonly share: ConnectionShare;
  /** Node.js has no other way to stop reading below a handshake. */
  readonly handle: ReadHandle | null;
  /** How often it has got a place among those that are read from, or kept it for the next turn. */
  times: number;
  /** It has been read from for a turn since then. */
  hasHadTurn: boolean;
}

function firstOf(all: Iterable<Pending>, count: number): readonly Pending[] {
  const first: Pending[] = [];
  for (const pending of all) {
    if (first.length >= count) break;
    first.push(pending);
  }
  return first;
}

interface ReadHandle {
  readStart(): void;
  readStop(): void;
}

/** The first byte of a connection that begins with a TLS handshake. No frame of a client and no packet of a server begins so. */
const HANDSHAKE_RECORD = 0x16;
/** Milliseconds of a turn in which handshakes are begun; the last one may take longer. */
const BUDGET_MS = 2;
/** Handshakes that may continue in one turn while none is done: a key exchange takes half a millisecond. */
const READING_MAX = 4;
const IGNORE = (): void => {};
