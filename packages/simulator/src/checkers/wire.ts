/**
 * Observes the quorum and election ports of the virtual network, and reports what the servers send to each other.
 *
 *     bytes written ─► decoded, reported as `sent` ─► wait for the network ─► reported as `received`
 *                                                          └ lost when the connection breaks
 *
 * A stream is first in, first out, and what arrives is a prefix of what was written. So each packet is decoded once,
 * when it is written, and its arrival is known by counting bytes.
 */
import {
  ELECTION_PROBE_BYTES,
  type ElectionNotification,
  type ElectionProbe,
  getInt,
  JuteReader,
  type LeaderPacket,
  type LearnerPacket,
  measureElectionHello,
  PacketType,
  QuorumPacketScanner,
  readElectionHello,
  readElectionNotification,
  readElectionProbe,
  readLeaderPacket,
  readLearnerPacket,
} from '@meerkat/protocol';
import type { StreamTap } from '../stream-tap.ts';
import { bodyHash } from './body-hash.ts';
import { SnapSkip } from './snap-skip.ts';

interface WireEventBase {
  readonly stage: 'sent' | 'received';
  readonly connection: number;
  /** Ids of servers. */
  readonly from: number;
  readonly to: number;
  /** Between an observer and the follower that it follows instead of the leader. */
  readonly isRelayed?: true | undefined;
}

/** The protocol at a port of a server: for its learners, for its observers while it follows, or among voters. */
export type PortKind = 'quorum' | 'observers' | 'election';

/** One packet, written or arrived. */
export type WireEvent =
  | (WireEventBase & {
      readonly kind: 'leader-packet';
      readonly packet: LeaderPacket;
      /** Of PROPOSAL and INFORM: `bodyHash` of the payload; 0 of others. */
      readonly hash: number;
    })
  | (WireEventBase & { readonly kind: 'learner-packet'; readonly packet: LearnerPacket })
  | (WireEventBase & { readonly kind: 'notification'; readonly notification: ElectionNotification })
  | (WireEventBase & { readonly kind: 'probe'; readonly probe: ElectionProbe })
  /** The connection is gone. `from` had dialled. */
  | (WireEventBase & { readonly kind: 'closed' })
  /** Bytes that are no packet; the rest of this direction is ignored. */
  | (WireEventBase & { readonly kind: 'garbage'; readonly why: string });

export interface WireTapOptions {
  /** Which protocol is spoken at a port; null: ignored. */
  portKind(host: string, port: number): PortKind | null;
  /** Server id of a host, or null when it is not in the ensemble. */
  serverOf(host: string): number | null;
  /**
   * @param size bytes of the packet that is sent; 0 of other events
   * @param behind bytes that were written with it and follow it
   */
  onEvent(event: WireEvent, size: number, behind: number): void;
}

interface Direction {
  readonly decode: (bytes: Uint8Array) => void;
  /** Bytes that have been written, and that have arrived. */
  written: number;
  arrived: number;
  /** Packets in flight: their events, and how many bytes were written up to their end. */
  readonly onTheWay: { readonly event: WireEvent; readonly end: number }[];
}

interface Connection {
  readonly dialler: string;
  readonly from: number;
  readonly to: number;
  readonly directions: { readonly dialler: Direction; readonly listener: Direction };
}

export class WireTap implements StreamTap {
  readonly #options: WireTapOptions;
  readonly #connections: Map<number, Connection> = new Map();

  constructor(options: WireTapOptions) {
    this.#options = options;
  }

  onOpen(connection: number, dialler: string, host: string, port: number): void {
    const kind = this.#options.portKind(host, port);
    const from = this.#options.serverOf(dialler);
    const to = this.#options.serverOf(host);
    if (kind === null || from === null || to === null) return;
    const isRelayed = kind === 'observers' ? true : undefined;
    const down: WireEventBase = { stage: 'sent', connection, from: to, to: from, isRelayed };
    const up: WireEventBase = { stage: 'sent', connection, from, to, isRelayed };
    const there = kind === 'election' ? this.#election(up, true) : this.#learner(up);
    const back = kind === 'election' ? this.#election(down, false) : this.#leader(down);
    this.#connections.set(connection, { dialler, from, to, directions: { dialler: there, listener: back } });
  }

  onBytes(connection: number, from: string, stage: 'sent' | 'received', bytes: Uint8Array): void {
    const open = this.#connections.get(connection);
    if (open === undefined) return;
    const direction = from === open.dialler ? open.directions.dialler : open.directions.listener;
    if (stage === 'sent') {
      direction.decode(bytes);
      return;
    }
    direction.arrived += bytes.length;
    while (direction.onTheWay.length > 0 && direction.onTheWay[0]!.end <= direction.arrived) {
      this.#options.onEvent(arrived(direction.onTheWay.shift()!.event), 0, 0);
    }
  }

  onClose(connection: number): void {
    const open = this.#connections.get(connection);
    if (open === undefined) return;
    this.#connections.delete(connection);
    this.#options.onEvent({ kind: 'closed', stage: 'received', connection, from: open.from, to: open.to }, 0, 0);
  }

  #learner(about: WireEventBase): Direction {
    return this.#direction(about, new PacketDecoder(), (reader, base) => {
      const packet = readLearnerPacket(reader);
      return packet === null ? null : learnerPacket(base, 'sent', packet);
    });
  }

  #leader(about: WireEventBase): Direction {
    const decoder = new PacketDecoder();
    return this.#direction(about, decoder, (reader, base) => {
      const packet = readLeaderPacket(reader);
      if (packet === null) return null;
      if (packet.type === PacketType.snap) decoder.expectSnapshot();
      return leaderPacket(base, 'sent', packet, hashOf(packet));
    });
  }

  #election(about: WireEventBase, hasHello: boolean): Direction {
    return this.#direction(about, new FrameDecoder(hasHello), (reader, base) => {
      if (reader.remaining === ELECTION_PROBE_BYTES) {
        const probe = readElectionProbe(reader);
        return probe === null ? null : { ...base, kind: 'probe', probe };
      }
      const notification = readElectionNotification(reader);
      return notification === null ? null : { ...base, kind: 'notification', notification };
    });
  }

  #direction(
    base: WireEventBase,
    decoder: PacketDecoder | FrameDecoder,
    read: (reader: JuteReader, base: WireEventBase) => WireEvent | null,
  ): Direction {
    let isGarbage = false;
    const reader = new JuteReader(undefined, FIELD_BYTES_MAX);
    const direction: Direction = {
      written: 0,
      arrived: 0,
      onTheWay: [],
      decode: (bytes) => {
        direction.written += bytes.length;
        if (isGarbage) return;
        const fault = decoder.take(bytes, (packet, start, end, behind) => {
          reader.reset(packet, start, end);
          const event = read(reader, base);
          if (event === null) return false;
          direction.onTheWay.push({ event, end: direction.written - behind });
          this.#options.onEvent(event, end - start, behind);
          return true;
        });
        if (fault === null) return;
        isGarbage = true;
        this.#options.onEvent({ ...base, kind: 'garbage', why: fault }, 0, 0);
      },
    };
    return direction;
  }
}

const FIELD_BYTES_MAX = 0x10000000;

function hashOf(packet: LeaderPacket): number {
  const isTxn = packet.type === PacketType.proposal || packet.type === PacketType.inform;
  return isTxn || packet.type === PacketType.informAndActivate ? bodyHash(packet.payload) : 0;
}

/* Written out field by field: for each packet, a copy by spreading costs ten times as much. */

type Stage = WireEventBase['stage'];

function leaderPacket(about: WireEventBase, stage: Stage, packet: LeaderPacket, hash: number): WireEvent {
  const { connection, from, to, isRelayed } = about;
  return { kind: 'leader-packet', stage, connection, from, to, isRelayed, packet, hash };
}

function learnerPacket(about: WireEventBase, stage: Stage, packet: LearnerPacket): WireEvent {
  const { connection, from, to, isRelayed } = about;
  return { kind: 'learner-packet', stage, connection, from, to, isRelayed, packet };
}

/** The same packet, at its receiver. */
function arrived(event: WireEvent): WireEvent {
  if (event.kind === 'leader-packet') return leaderPacket(event, 'received', event.packet, event.hash);
  if (event.kind === 'learner-packet') return learnerPacket(event, 'received', event.packet);
  return { ...event, stage: 'received' };
}

/** Called with a packet at bytes[start, end), followed by `behind` bytes. @returns false if it is invalid */
type OnPacket = (bytes: Uint8Array, start: number, end: number, behind: number) => boolean;

/** Bytes that are kept until the packet that they begin is there as a whole. */
class Rest {
  #bytes: Uint8Array = new Uint8Array(0);

  /** The rest and what follows it, in memory of their own: packets are views of it and are kept. */
  join(bytes: Uint8Array): Uint8Array {
    const joined = new Uint8Array(this.#bytes.length + bytes.length);
    joined.set(this.#bytes);
    joined.set(bytes, this.#bytes.length);
    return joined;
  }

  keep(bytes: Uint8Array): void {
    this.#bytes = bytes;
  }
}

/** The quorum port: packets back to back, and snapshots between them. */
class PacketDecoder {
  readonly #rest = new Rest();
  readonly #scanner = new QuorumPacketScanner(FIELD_BYTES_MAX);
  #snapshot: SnapSkip | null = null;

  expectSnapshot(): void {
    this.#snapshot = new SnapSkip();
  }

  /** @returns what is wrong, or null */
  take(chunk: Uint8Array, onPacket: OnPacket): string | null {
    const bytes = this.#rest.join(chunk);
    let at = 0;
    while (at < bytes.length) {
      if (this.#snapshot !== null) {
        at += this.#snapshot.skip(bytes, at, bytes.length);
        if (this.#snapshot.isFault) return 'a snapshot does not end with its signature';
        if (!this.#snapshot.isComplete) break;
        this.#snapshot = null;
        continue;
      }
      const length = this.#scanner.scan(bytes, at, bytes.length);
      if (length < 0) return 'a length is out of range';
      if (length === 0) break;
      if (!onPacket(bytes, at, at + length, bytes.length - at - length))
        return `a packet of type ${getInt(bytes, at)} is malformed`;
      at += length;
    }
    this.#rest.keep(bytes.subarray(at));
    return null;
  }
}

/** The election port: a hello from the one who dialled, then frames. */
class FrameDecoder {
  readonly #rest = new Rest();
  #expectsHello: boolean;

  constructor(expectsHello: boolean) {
    this.#expectsHello = expectsHello;
  }

  /** @returns what is wrong, or null */
  take(chunk: Uint8Array, onPacket: OnPacket): string | null {
    const bytes = this.#rest.join(chunk);
    let at = 0;
    if (this.#expectsHello) {
      const length = measureElectionHello(bytes, 0, bytes.length);
      if (length < 0) return 'the hello is malformed';
      if (length > 0) {
        const reader = new JuteReader(bytes);
        reader.reset(bytes, 0, length);
        if (readElectionHello(reader) === null) return 'the hello is malformed';
        this.#expectsHello = false;
        at = length;
      }
    }
    while (!this.#expectsHello && at + 4 <= bytes.length) {
      const length = getInt(bytes, at);
      if (length < 0) return 'the length of a frame is negative';
      const end = at + 4 + length;
      if (end > bytes.length) break;
      if (!onPacket(bytes, at + 4, end, bytes.length - end)) return 'a notification is malformed';
      at = end;
    }
    this.#rest.keep(bytes.subarray(at));
    return null;
  }
}
