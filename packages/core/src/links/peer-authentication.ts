/**
 * Authenticates servers to each other by SASL, before anything else (QuorumAuth).
 *
 *     quorum port:    connected ──► exchange ──► FOLLOWERINFO …
 *     election port:  connected ──► hello ──► exchange ──► notifications …
 *
 *     packet := long magic, int status (0 in progress, 1 success, −1 error), buffer token
 *
 * The dialling side begins. The listening side looks at the first eight bytes (after the hello): the magic starts an
 * exchange; anything else is a server that does not authenticate, which is accepted unless authentication is required.
 * After the exchange the stream is unchanged: nothing later is signed or encrypted.
 *
 * It wraps another network. The listening side gets the stream at once, so that it can bound strangers, but no byte of
 * it, not even the hello, before its peer has authenticated (CVE-2018-8012). The dialling side may send at once; the
 * bytes wait here.
 */
import { EMPTY_BYTES, getInt, getLongBig, JuteWriter, measureElectionHello } from '@meerkat/protocol';
import type {
  ByteStream,
  ConnectEvents,
  Endpoint,
  ListenEvents,
  Network,
  PeerAuthentication,
  SaslConversation,
  SaslInitiator,
  StreamEvents,
  Trace,
} from '../base/ports.ts';
import { InputBuffer } from './input-buffer.ts';

export type PeerPort = 'election' | 'quorum';

/** The network, with an exchange at the beginning of each stream if one is configured. */
export function authenticated(
  network: Network,
  authentication: PeerAuthentication | null,
  port: PeerPort,
  trace: Trace,
): Network {
  if (authentication === null) return network;
  return {
    listen: (at: Endpoint, events: ListenEvents) =>
      network.listen(at, {
        onListening: () => events.onListening(),
        onListenFailed: (reason) => events.onListenFailed(reason),
        onAccepted: (stream) => new Acceptor(stream, events, authentication, port, trace),
      }),
    connect: (to: Endpoint, events: ConnectEvents) => {
      const initiator = authentication.startInitiator(to.host);
      if (initiator === null) return network.connect(to, events);
      return network.connect(to, {
        onConnectFailed: (reason) => events.onConnectFailed(reason),
        onConnected: (stream) => new Initiator(stream, events, initiator, port, trace),
      });
    },
  };
}

const MAGIC = 0x5f2435013501edccn;
const MAGIC_BYTES = 8;
const Status = { inProgress: 0, success: 1, error: -1 } as const;
/** Magic, status and the length of the token. */
const HEADER_BYTES = 16;
/** Kerberos tickets may be long. */
const TOKEN_BYTES_MAX = 64 * 1024;
/** Bytes that the dialling side may send before the exchange is over: votes and a learner's first packet. */
const HELD_BYTES_MAX = 1024 * 1024;
/** Maximum tokens of one exchange, as in Apache ZooKeeper. */
const TOKENS_MAX = 6;

interface Packet {
  readonly status: number;
  readonly token: Uint8Array;
}

/** What both ends share: the stream as seen by its owner. */
abstract class AuthenticatingStream implements ByteStream, StreamEvents {
  protected readonly stream: ByteStream;
  protected readonly input: InputBuffer = new InputBuffer();
  /** Receives what comes after the exchange; null until it is known. */
  protected owner: StreamEvents | null = null;
  /** True when the exchange is over, or was skipped. */
  protected isOpen = false;
  protected hasSpoken = false;
  /** Hosts of the membership that the peer has proved to be; null: the exchange does not name hosts. */
  protected provenHosts: readonly string[] | null = null;
  #isGone = false;
  readonly #port: PeerPort;
  readonly #trace: Trace;

  constructor(stream: ByteStream, port: PeerPort, trace: Trace) {
    this.stream = stream;
    this.#port = port;
    this.#trace = trace;
  }

  get remote(): ByteStream['remote'] {
    return this.stream.remote;
  }

  get isCrowding(): boolean {
    return this.stream.isCrowding === true;
  }

  /** The hosts proved by both the certificate and the exchange, if there are both. */
  get certifiedHosts(): readonly string[] | null {
    const certified = this.stream.certifiedHosts ?? null;
    const proven = this.provenHosts;
    if (certified === null || proven === null) return certified ?? proven;
    return certified.filter((host) => proven.includes(host));
  }

  abstract get queuedBytes(): number;
  abstract write(bytes: Uint8Array): void;
  abstract end(): void;
  /** Processes input until the exchange is over. */
  protected abstract consume(): void;
  /** The peer disconnected before the exchange was over. */
  protected onEnd(): void {}

  destroy(): void {
    this.stream.destroy();
  }

  pause(): void {
    this.stream.pause();
  }

  resume(): void {
    this.stream.resume();
  }

  get isAnswering(): boolean {
    return this.owner?.isAnswering === true;
  }

  onBytes(chunk: Uint8Array): void {
    if (this.#isGone) return;
    if (this.isOpen) {
      this.owner?.onBytes(chunk);
      return;
    }
    this.input.append(chunk);
    this.consume();
  }

  onDrain(): void {
    if (this.queuedBytes === 0) this.owner?.onDrain();
  }

  onClosed(reason: string): void {
    if (this.#isGone) return;
    if (!this.isOpen) this.onEnd();
    this.#isGone = true;
    this.input.clear();
    this.owner?.onClosed(reason);
  }

  protected get isOnElectionPort(): boolean {
    return this.#port === 'election';
  }

  /** The rest of the input belongs to the owner. */
  protected open(): void {
    this.isOpen = true;
    const { bytes, start, end } = this.input;
    const rest = bytes.slice(start, end);
    this.input.clear();
    if (rest.length > 0) this.owner?.onBytes(rest);
  }

  /** Takes a complete packet; null while it is incomplete. Invalid bytes end the stream. */
  protected takePacket(): Packet | null {
    const { bytes, start, end } = this.input;
    if (end - start < HEADER_BYTES) return null;
    const length = Math.max(0, getInt(bytes, start + 12));
    if (getLongBig(bytes, start) !== MAGIC || length > TOKEN_BYTES_MAX) {
      this.fail('it sent an invalid SASL packet');
      return null;
    }
    const next = start + HEADER_BYTES + length;
    if (next > end) return null;
    this.input.start = next;
    return { status: getInt(bytes, start + 8), token: bytes.slice(start + HEADER_BYTES, next) };
  }

  protected sendPacket(status: number, token: Uint8Array | null): void {
    const writer = new JuteWriter(HEADER_BYTES + (token?.length ?? 0));
    writer.longBig(MAGIC);
    writer.int(status);
    writer.buffer(token);
    this.hasSpoken = true;
    this.stream.write(writer.toBytes());
  }

  protected warn(what: string): void {
    const { host, port } = this.stream.remote;
    this.#trace.emit({ kind: 'warning', message: `${host}:${port} on the ${this.#port} port: ${what}` });
  }

  protected fail(reason: string): void {
    if (this.#isGone) return;
    this.warn(reason);
    this.#isGone = true;
    this.input.clear();
    // The last packet may still leave.
    if (this.hasSpoken) this.stream.end();
    else this.stream.destroy();
    this.owner?.onClosed(reason);
  }
}

/** The listening end. */
class Acceptor extends AuthenticatingStream {
  readonly #events: ListenEvents;
  readonly #authentication: PeerAuthentication;
  #conversation: SaslConversation | null = null;
  #tokens = 0;
  /** The peer's hello, passed to the owner once the peer has authenticated. */
  #hello: Uint8Array | null = null;

  constructor(
    stream: ByteStream,
    events: ListenEvents,
    authentication: PeerAuthentication,
    port: PeerPort,
    trace: Trace,
  ) {
    super(stream, port, trace);
    this.#events = events;
    this.#authentication = authentication;
    // The owner gets the stream at once: it bounds strangers, and the time that they may take.
    this.owner = this.#events.onAccepted(this);
  }

  get queuedBytes(): number {
    return this.stream.queuedBytes;
  }

  write(bytes: Uint8Array): void {
    this.stream.write(bytes);
  }

  end(): void {
    this.stream.end();
  }

  protected consume(): void {
    if (this.isOnElectionPort && this.#hello === null && !this.#takeHello()) return;
    if (!this.isOpen && this.#conversation === null) this.#begin();
    for (let packet = this.#next(); packet !== null; packet = this.#next()) this.#answer(packet);
  }

  #next(): Packet | null {
    return this.isOpen || this.#conversation === null ? null : this.takePacket();
  }

  /** @returns false while it is incomplete */
  #takeHello(): boolean {
    const { bytes, start, end } = this.input;
    const length = measureElectionHello(bytes, start, end);
    if (length < 0) {
      this.fail('its hello is invalid');
      return false;
    }
    if (length === 0) return false;
    this.#hello = bytes.slice(start, start + length);
    this.input.start = start + length;
    return true;
  }

  /** Decides whether there is an exchange, once eight bytes have arrived. */
  #begin(): void {
    const { bytes, start, end } = this.input;
    if (end - start < MAGIC_BYTES) return;
    if (getLongBig(bytes, start) === MAGIC) {
      this.#conversation = this.#authentication.startAcceptor(this.stream.remote);
    } else if (this.#authentication.isRequired) {
      this.fail('it does not authenticate, which quorum.auth.serverRequireSasl demands');
    } else {
      this.#admit();
    }
  }

  /** A server with a lower id that does not authenticate sends its hello and closes; nothing follows. */
  protected override onEnd(): void {
    if (this.#hello !== null && this.#conversation === null && !this.#authentication.isRequired) this.#admit();
  }

  #answer({ token }: Packet): void {
    const step = this.#conversation?.step(token) ?? { kind: 'failure' as const, reason: 'there is no exchange' };
    this.#tokens++;
    if (step.kind === 'challenge' && this.#tokens < TOKENS_MAX) {
      if (step.warning !== undefined) this.warn(step.warning);
      this.sendPacket(Status.inProgress, step.token);
    } else if (step.kind === 'success') {
      const hosts = step.identities.filter(({ scheme }) => scheme === 'host').map(({ id }) => id);
      if (hosts.length > 0) this.provenHosts = hosts;
      this.sendPacket(Status.success, step.token);
      this.#admit();
    } else {
      const reason = step.kind === 'failure' ? step.reason : 'its exchange takes too many tokens';
      this.sendPacket(Status.error, EMPTY_BYTES);
      this.#onFailed(reason);
    }
  }

  #onFailed(reason: string): void {
    if (this.#authentication.isRequired) {
      this.fail(`it failed to authenticate by SASL: ${reason}`);
      return;
    }
    this.warn(`it failed to authenticate by SASL, which is not required: ${reason}`);
    this.#admit();
  }

  #admit(): void {
    this.isOpen = true;
    if (this.#hello !== null) this.owner?.onBytes(this.#hello);
    this.open();
  }
}

/** The dialling end. */
class Initiator extends AuthenticatingStream {
  readonly #initiator: SaslInitiator;
  /** Writes that wait for the end of the exchange; on the election port, the hello was sent before it. */
  readonly #held: Uint8Array[] = [];
  #heldBytes = 0;
  #hasSaidHello: boolean;
  #isEnding = false;

  constructor(stream: ByteStream, events: ConnectEvents, initiator: SaslInitiator, port: PeerPort, trace: Trace) {
    super(stream, port, trace);
    this.#initiator = initiator;
    this.#hasSaidHello = port === 'quorum';
    if (this.#hasSaidHello) this.#start();
    this.owner = events.onConnected(this);
  }

  get queuedBytes(): number {
    return this.stream.queuedBytes + this.#heldBytes;
  }

  write(bytes: Uint8Array): void {
    if (this.isOpen) {
      this.stream.write(bytes);
    } else if (!this.#hasSaidHello) {
      // The first write on the election port is the complete hello.
      this.#hasSaidHello = true;
      this.stream.write(bytes);
      this.#start();
    } else {
      // Copy it: the owner reuses the memory once nothing is queued, but these bytes stay queued until `onDrain`.
      this.#held.push(bytes.slice());
      this.#heldBytes += bytes.length;
      if (this.#heldBytes > HELD_BYTES_MAX) this.destroy();
    }
  }

  end(): void {
    if (this.isOpen) this.stream.end();
    else this.#isEnding = true;
  }

  #start(): void {
    this.sendPacket(Status.inProgress, this.#initiator.start());
  }

  protected consume(): void {
    for (let packet = this.takePacket(); packet !== null; packet = this.isOpen ? null : this.takePacket()) {
      this.#onPacket(packet);
    }
  }

  #onPacket({ status, token }: Packet): void {
    if (status !== Status.inProgress && status !== Status.success) {
      this.fail('it refuses the SASL login of this server (quorum.auth): compare the logins of both');
      return;
    }
    const step = this.#initiator.step(token);
    if (step.kind === 'failure') {
      this.fail(`the SASL exchange with it failed: ${step.reason}`);
    } else if (status === Status.inProgress) {
      if (step.token !== null) this.sendPacket(Status.inProgress, step.token);
    } else if (step.kind === 'success' && step.token === null) {
      this.#onDone();
    } else {
      this.fail('it ends the SASL exchange before it has proved who it is');
    }
  }

  #onDone(): void {
    this.isOpen = true;
    const held = this.#held.splice(0);
    this.#heldBytes = 0;
    for (const bytes of held) this.stream.write(bytes);
    if (this.#isEnding) this.stream.end();
    this.open();
    if (held.length > 0 && this.stream.queuedBytes === 0) this.owner?.onDrain();
  }
}
