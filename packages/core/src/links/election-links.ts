/**
 * The connections over which servers elect their leader: one between every two servers, regardless of which dials
 * first.
 *
 *     start ──► listeners ──► handshakes ──┐
 *                                          ├─► ElectionPeer, one per server ──► notifications
 *     connectAll ──► dials ────────────────┘
 *
 * Each peer is dialled separately, so that one that never answers delays no other (ZOOKEEPER-2930, 3756). A connection
 * that does not send a valid hello in time is closed (ZOOKEEPER-3296).
 *
 * Connections outlive the election: they stay open while this server leads or follows, so that it can answer a server
 * that is looking.
 */
import type { ElectionHello, ElectionNotification, ElectionProbe, Member, Membership } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type {
  ByteStream,
  Clock,
  Endpoint,
  Network,
  PeerAuthentication,
  Random,
  StreamEvents,
  Trace,
} from '../base/ports.ts';
import { onePerPort } from './address-list.ts';
import { ElectionPeer, type ElectionPeerHost } from './election-peer.ts';
import { ElectionStream, type ElectionStreamOwner } from './election-stream.ts';
import { ListenerSet } from './listener-set.ts';
import { authenticated } from './peer-authentication.ts';
import { UnidentifiedConnections } from './unidentified-connections.ts';

export interface ElectionLinksHost {
  readonly ports: {
    readonly network: Network;
    readonly clock: Clock;
    readonly random: Random;
    readonly peerAuthentication?: PeerAuthentication | null;
  };
  readonly trace: Trace;
}

export interface ElectionLinksOptions {
  readonly serverId: number;
  /** Contains this server; later memberships, passed to `onMembershipChanged`, need not. */
  readonly membership: Pick<Membership, 'members'>;
  /**
   * Timeout in milliseconds of a dial, and of an accepted connection that has not sent a hello
   * (`zookeeper.cnxTimeout`). Default 5000.
   */
  readonly connectTimeoutMs?: number;
  /** Timeout of a dial to one of several addresses of a server. Default `connectTimeoutMs`. */
  readonly addressTimeoutMs?: number;
  /** The network listens on all interfaces, regardless of the address it is given. */
  readonly listensOnAllIps?: boolean;
  /** Why a peer with a certificate for these hosts may not use this server id; see `Members`. */
  readonly refusalOfClaim?: (serverId: number, certifiedHosts: readonly string[] | null | undefined) => string | null;
}

export interface ElectionLinksEvents {
  /** A connection to a peer is established, perhaps replacing another. What is sent to it now leaves now. */
  onPeerConnected(id: number): void;
  /** The connection to a peer broke, or a dial failed. */
  onPeerUnreachable(id: number): void;
  onNotification(from: number, notification: ElectionNotification): void;
}

const LISTENING = { who: 'the election', consequence: 'servers with a higher id cannot connect' };
const CONNECT_TIMEOUT_MS = 5000;
const CROWDED = 'it has not identified itself, and the descriptors of this process run short';
/** Maximum connections that have not identified themselves; beyond that some are closed, see `UnidentifiedConnections`. */
const STRANGERS_MAX = 256;
/** Maximum servers outside the membership that are connected: joining servers, or strangers posing as such. */
const OUTSIDERS_MAX = 64;

export class ElectionLinks implements ElectionStreamOwner {
  readonly #options: ElectionLinksOptions;
  readonly #clock: Clock;
  readonly #trace: Trace;
  readonly #connectTimeoutMs: number;
  readonly #peerHost: ElectionPeerHost;
  readonly #listeners: ListenerSet;
  #members: ReadonlyMap<number, Member>;
  /** Where this server can be dialled, according to the last membership that contains it. */
  #ownAddresses: readonly Endpoint[];
  readonly #peers = new Map<number, ElectionPeer>();
  /** Have not identified themselves. */
  readonly #strangers = new UnidentifiedConnections<ElectionStream>();
  #isStopped = false;

  constructor(host: ElectionLinksHost, options: ElectionLinksOptions, events: ElectionLinksEvents) {
    const { clock, random, peerAuthentication = null } = host.ports;
    const network = authenticated(host.ports.network, peerAuthentication, 'election', host.trace);
    this.#options = options;
    this.#clock = clock;
    this.#trace = host.trace;
    this.#connectTimeoutMs = options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
    this.#members = new Map(options.membership.members.map((member) => [member.serverId, member]));
    const self = this.#members.get(options.serverId);
    assert(self !== undefined, 'a server is a member of its ensemble');
    this.#ownAddresses = electionEndpointsOf(self);
    this.#listeners = new ListenerSet({ network, clock, trace: host.trace }, LISTENING, {
      onAccepted: (stream) => this.#accept(stream),
    });
    this.#listeners.set(this.#listenersFor(this.#ownAddresses));
    const ownAddresses = (): readonly Endpoint[] => this.#ownAddresses;
    this.#peerHost = {
      network,
      clock,
      random,
      serverId: options.serverId,
      get ownAddresses() {
        return ownAddresses();
      },
      connectTimeoutMs: this.#connectTimeoutMs,
      addressTimeoutMs: options.addressTimeoutMs ?? this.#connectTimeoutMs,
      onPeerConnected: (id) => this.#deliver(() => events.onPeerConnected(id)),
      onPeerUnreachable: (id) => {
        this.#deliver(() => events.onPeerUnreachable(id));
        this.#maybeForget(id);
      },
      onPeerLost: (serverId, reason) => {
        this.#deliver(() => this.#trace.emit({ kind: 'peer-lost', serverId, reason }));
      },
      refuse: (stream, reason) => this.#refuse(stream, reason),
      onNotification: (from, notification) => this.#deliver(() => events.onNotification(from, notification)),
    };
  }

  /** Milliseconds of the monotonic clock; Infinity when nothing is due. */
  nextDeadlineMs(): number {
    let atMs = Number.POSITIVE_INFINITY;
    atMs = Math.min(atMs, this.#listeners.nextDeadlineMs);
    for (const peer of this.#peers.values()) atMs = Math.min(atMs, peer.nextDeadlineMs);
    for (const { helloUntilMs } of this.#strangers) return Math.min(atMs, helloUntilMs);
    return atMs;
  }

  /** Servers to which a connection is established. */
  get connectedServers(): readonly number[] {
    return [...this.#peers.values()].filter((peer) => peer.isConnected).map((peer) => peer.id);
  }

  /** Starts to listen. */
  start(): void {
    this.#listeners.start();
  }

  /** Dials every voter that is not connected, and retries until it is: this server is looking. */
  connectAll(): void {
    if (this.#isStopped) return;
    for (const { serverId, role } of this.#members.values()) {
      if (role === 'participant' && serverId !== this.#options.serverId) this.#peer(serverId).connect();
    }
  }

  /**
   * While a peer cannot take more, only the newest notification is kept for it. A peer that is not connected is
   * dialled.
   */
  send(to: number, notification: ElectionNotification): void {
    if (this.#isStopped || to === this.#options.serverId) return;
    if (this.#members.has(to)) this.#peer(to).send(notification);
    else this.#peers.get(to)?.send(notification);
  }

  onTick(): void {
    this.#listeners.onTick();
    for (const peer of [...this.#peers.values()]) peer.onTick();
    const nowMs = this.#clock.monotonicMs();
    for (const stream of this.#strangers) {
      if (nowMs < stream.helloUntilMs) break;
      this.#refuse(stream, `it has not identified itself within ${this.#connectTimeoutMs} ms`);
    }
  }

  /** Closes everything; no events follow. */
  stop(): void {
    this.#isStopped = true;
    this.#listeners.stop();
    for (const stream of [...this.#strangers]) {
      this.#strangers.delete(stream);
      stream.close();
    }
    for (const peer of this.#peers.values()) peer.stop();
    this.#peers.clear();
  }

  /**
   * The membership has changed. A server that is no longer a member is no longer dialled; its connection stays until it
   * ends.
   *
   * @param members members of the committed membership, and those that are only in the proposed one
   */
  onMembershipChanged(members: Iterable<Member>): void {
    if (this.#isStopped) return;
    this.#members = new Map([...members].map((member) => [member.serverId, member]));
    const self = this.#members.get(this.#options.serverId);
    if (self !== undefined) {
      this.#ownAddresses = electionEndpointsOf(self);
      this.#listeners.set(this.#listenersFor(this.#ownAddresses));
    }
    for (const [id, peer] of [...this.#peers]) {
      const member = this.#members.get(id);
      if (member !== undefined) peer.configure(electionEndpointsOf(member));
      else if (!peer.isConnected) {
        this.#peers.delete(id);
        peer.stop();
      }
    }
  }

  #listenersFor(endpoints: readonly Endpoint[]): readonly Endpoint[] {
    return this.#options.listensOnAllIps === true ? onePerPort(endpoints) : endpoints;
  }

  #deliver(event: () => void): void {
    if (!this.#isStopped) event();
  }

  #peer(id: number): ElectionPeer {
    const known = this.#peers.get(id);
    if (known !== undefined) return known;
    const member = this.#members.get(id);
    const peer = new ElectionPeer(id, member === undefined ? [] : electionEndpointsOf(member), this.#peerHost);
    this.#peers.set(id, peer);
    return peer;
  }

  /** A server outside the membership is only kept while it is connected. */
  #maybeForget(id: number): void {
    if (!this.#members.has(id) && this.#peers.get(id)?.isIdle === true) this.#peers.delete(id);
  }

  /* --------------------------------------------------------------------------- connections of others ---- */

  #accept(stream: ByteStream): StreamEvents {
    const accepted = new ElectionStream(stream, this.#clock.monotonicMs() + this.#connectTimeoutMs, this);
    if (this.#isStopped) {
      accepted.close();
      return accepted;
    }
    this.#makeRoom(stream.isCrowding ?? false);
    this.#strangers.add(accepted, stream.remote);
    return accepted;
  }

  #makeRoom(isCrowded: boolean): void {
    const stranger = this.#strangers.choose();
    if (this.#strangers.size >= STRANGERS_MAX) {
      this.#refuse(stranger!, `it has not identified itself, and ${STRANGERS_MAX} others have not either`);
    } else if (isCrowded && stranger !== null) {
      this.#refuse(stranger, CROWDED);
    } else if (isCrowded) {
      this.#shedOutsider();
    }
  }

  #shedOutsider(): void {
    for (const [id, peer] of this.#peers) {
      if (this.#members.has(id)) continue;
      this.#peers.delete(id);
      peer.stop();
      this.#peerHost.onPeerUnreachable(id);
      return;
    }
  }

  onHello(stream: ElectionStream, { serverId, addresses }: ElectionHello): void {
    this.#strangers.delete(stream);
    const refusal = this.#findRefusal(serverId, stream);
    if (serverId === null || refusal !== null) {
      this.#refuse(stream, refusal ?? 'it does not send its id, as observers before 3.5');
    } else if (serverId > this.#options.serverId) {
      this.#peer(serverId).adopt(stream);
    } else {
      stream.close();
      this.#peer(serverId).dialBack(addresses);
      this.#maybeForget(serverId);
    }
  }

  #findRefusal(serverId: number | null, { certifiedHosts }: ElectionStream): string | null {
    if (serverId === this.#options.serverId) return `it claims to be server ${serverId}, which is this one`;
    const refusal = serverId === null ? null : (this.#options.refusalOfClaim?.(serverId, certifiedHosts) ?? null);
    if (refusal !== null) return refusal;
    if (serverId === null || this.#members.has(serverId) || this.#peers.has(serverId)) return null;
    const outsiders = [...this.#peers.keys()].filter((id) => !this.#members.has(id)).length;
    return outsiders < OUTSIDERS_MAX ? null : `${outsiders} servers that are not members are already connected`;
  }

  #refuse(stream: ElectionStream, reason: string): void {
    this.#strangers.delete(stream);
    stream.close();
    this.#trace.emit({ kind: 'connection-refused', remote: stream.remote, reason: `on the election port: ${reason}` });
  }

  onNotification(_stream: ElectionStream, _notification: ElectionNotification): void {}

  onProbe(_stream: ElectionStream, _probe: ElectionProbe): void {}

  onRoom(_stream: ElectionStream): void {}

  /** A connection that never identified itself has ended, or was closed for what it sent. */
  onStreamClosed(stream: ElectionStream, reason: string): void {
    if (this.#strangers.has(stream)) this.#refuse(stream, reason);
  }
}

function electionEndpointsOf({ addresses }: Member): readonly Endpoint[] {
  return addresses.map(({ host, electionPort }) => ({ host, port: electionPort }));
}
