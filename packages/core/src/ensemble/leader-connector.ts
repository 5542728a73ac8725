/**
 * A learner's connection to its leader or observer master, from the first attempt to the end:
 *
 *     dial ─► LeaderLink ─► packets
 *      ▲ └─ failed
 *      └─── for an observer: falls back from the followers that feed observers to the leader
 *
 * There is only one connection: an established link that breaks is not dialled again. After `close` there are no
 * events.
 */
import type { LearnerPacket, UnknownPacket, Zxid } from '@meerkat/protocol';
import type { EnsembleOptions } from '../base/options.ts';
import type { ByteStream, Network, StreamEvents } from '../base/ports.ts';
import { LeaderDial } from '../links/leader-dial.ts';
import { LeaderLink, type LeaderLinkEvents } from '../links/leader-link.ts';
import { MasterDial } from '../links/master-dial.ts';
import { authenticated } from '../links/peer-authentication.ts';
import type { Members } from './members.ts';
import type { RoleHost } from './role-host.ts';

export interface WayToLeaderEvents extends LeaderLinkEvents {
  onConnected(): void;
  /** More of a snapshot may have arrived. */
  onProgress(): void;
  /** The leader cannot be reached. Called once, as the last event. */
  onUnreachable(reason: string): void;
}

export class LeaderConnector {
  readonly #host: RoleHost;
  readonly #ensemble: EnsembleOptions;
  readonly #members: () => Members;
  readonly #leader: number;
  readonly #events: WayToLeaderEvents;
  #master: number;
  #dial: LeaderDial | MasterDial;
  #link: LeaderLink | null = null;
  #isClosed = false;

  constructor(
    host: RoleHost,
    ensemble: EnsembleOptions,
    members: () => Members,
    leader: number,
    isObserver: boolean,
    events: WayToLeaderEvents,
  ) {
    this.#host = host;
    this.#ensemble = ensemble;
    this.#members = members;
    this.#leader = leader;
    this.#events = events;
    this.#master = leader;
    this.#dial = isObserver && ensemble.observerMasterPort > 0 ? this.#dialMaster() : this.#dialLeader();
  }

  /** The server at the other end: the leader, or the follower that feeds this observer. */
  get master(): number {
    return this.#master;
  }

  get nextDeadlineMs(): number {
    return this.#dial.nextDeadlineMs;
  }

  start(): void {
    this.#dial.start();
  }

  onLeaderLost(): void {
    if (this.#link === null && this.#dial instanceof LeaderDial) this.#dial.onLeaderLost();
  }

  onTick(): void {
    if (this.#host.ports.clock.monotonicMs() >= this.#dial.nextDeadlineMs) this.#dial.onTick();
  }

  /** Does nothing until connected. */
  send(packet: Exclude<LearnerPacket, UnknownPacket>): void {
    this.#link?.send(packet);
  }

  /** Everything up to `zxid` is applied: the link may reuse the memory of those packets. */
  onApplied(zxid: Zxid): void {
    this.#link?.onApplied(zxid);
  }

  pause(): void {
    this.#link?.pause();
  }

  resume(): void {
    this.#link?.resume();
  }

  /** What has been sent still leaves. */
  close(): void {
    this.#isClosed = true;
    this.#dial.cancel();
    this.#link?.close();
  }

  #dialLeader(): LeaderDial {
    const leader = this.#leader;
    const { addressTimeoutMs } = this.#ensemble;
    return new LeaderDial(
      { clock: this.#host.ports.clock, network: this.#network },
      { addresses: this.#members().quorumEndpointsOf(leader), addressTimeoutMs },
      {
        onConnected: (stream) => this.#onConnected(stream),
        onFailed: (reason) => this.#events.onUnreachable(`server ${leader} cannot be reached as the leader: ${reason}`),
      },
    );
  }

  /** Dials the followers that feed observers; if none accepts observers, dials the leader. */
  #dialMaster(): MasterDial {
    const { clock, random } = this.#host.ports;
    const { addressTimeoutMs, observerMasterPort, initLimit } = this.#ensemble;
    return new MasterDial(
      { clock, random, network: this.#network },
      {
        masters: this.#members().observerMasters(this.#leader, observerMasterPort),
        addressTimeoutMs,
        patienceMs: (initLimit * this.#host.options.tickTimeMs) / 4,
      },
      {
        onConnected: (stream, serverId) => {
          this.#master = serverId;
          return this.#onConnected(stream);
        },
        onFailed: (reason) => {
          const message = `no follower takes observers at port ${observerMasterPort} (${reason}): this observer connects to the leader`;
          this.#host.trace.emit({ kind: 'warning', message });
          this.#dial = this.#dialLeader();
          this.#dial.start();
        },
      },
    );
  }

  get #network(): Network {
    const { network, peerAuthentication = null, trace } = this.#host.ports;
    return authenticated(network, peerAuthentication, 'quorum', trace);
  }

  #onConnected(stream: ByteStream): StreamEvents {
    const link = new LeaderLink(stream, this.#host, () => this.#host.servings.makeDatabase(), {
      onPacket: (packet) => {
        if (!this.#isClosed) this.#events.onPacket(packet);
      },
      onSnapshot: (database) => {
        if (!this.#isClosed) this.#events.onSnapshot(database);
      },
      onLinkClosed: (reason) => {
        if (!this.#isClosed) this.#events.onLinkClosed(reason);
      },
    });
    this.#link = link;
    if (this.#isClosed) link.close();
    else this.#events.onConnected();
    return {
      onBytes: (chunk) => {
        link.onBytes(chunk);
        if (!this.#isClosed) this.#events.onProgress();
      },
      onDrain: () => link.onDrain(),
      onClosed: (reason) => link.onClosed(reason),
    };
  }
}
