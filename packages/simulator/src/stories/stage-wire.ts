/**
 * Sees each packet between the servers of a stage when it is sent and when it arrives, and can cut a link before or
 * behind a packet, to the byte.
 */
import { counterOf, type LeaderPacket, type LearnerPacket, PacketType, type Zxid } from '@meerkat/protocol';
import { type WireEvent, WireTap } from '../checkers/wire.ts';
import type { StreamTap, StreamValve } from '../stream-tap.ts';
import { portKindOf, type VirtualEnsemble } from '../virtual-ensemble.ts';
import type { VirtualNetwork } from '../virtual-network.ts';
import type { VirtualServer } from '../virtual-server.ts';

/** Which packet to wait for; fields that are left out match anything. */
export interface PacketMatch {
  readonly from?: VirtualServer | undefined;
  readonly to?: VirtualServer | undefined;
  /** Default `sent`. */
  readonly stage?: 'sent' | 'received' | undefined;
  readonly type?: PacketType | undefined;
  readonly is?: ((packet: LeaderPacket | LearnerPacket) => boolean) | undefined;
}

/** Where a link is cut: before the packet, behind it, or this many bytes behind it (inside a snapshot). */
export type CutPlace = 'before' | 'after' | number;

interface Watch {
  readonly match: PacketMatch;
  readonly onSeen: (event: WireEvent) => void;
}

interface Cut {
  readonly from: number;
  readonly to: number;
  readonly match: PacketMatch;
  readonly place: CutPlace;
  readonly onCut: () => void;
}

export class StageWire implements StreamTap, StreamValve {
  readonly #network: VirtualNetwork;
  /** The checkers' tap, which sees everything first. */
  readonly #others: StreamTap | null;
  readonly #eyes: WireTap;
  #watches: Watch[] = [];
  #cuts: Cut[] = [];
  /** Directions between servers that are cut, and streams on which something was lost. */
  readonly #closed: Set<string> = new Set();
  readonly #holed: Set<number> = new Set();
  readonly #serverOf: (host: string) => number | null;
  /** Ids of the servers at the ends of the streams between servers. */
  readonly #ends: Map<number, readonly [number, number]> = new Map();
  /** Cuts that have begun, by their streams. */
  readonly #running: Map<number, { readonly cut: Cut; left: number }> = new Map();
  /** The last txn that was sent over each connection. */
  readonly #lastTxns: Map<number, number> = new Map();
  /** Size of the write that is being processed. */
  #writeBytes = 0;

  readonly #onLine: (line: string) => void;

  /** @param onLine called for each packet but pings */
  constructor(network: VirtualNetwork, ensemble: VirtualEnsemble, onLine: (line: string) => void) {
    this.#onLine = onLine;
    this.#network = network;
    this.#others = network.tap;
    this.#serverOf = (host) => ensemble.server(host)?.serverId ?? null;
    this.#eyes = new WireTap({
      portKind: (_host, port) => portKindOf(port),
      serverOf: this.#serverOf,
      onEvent: (event, size, behind) => this.#onEvent(event, size, behind),
    });
    network.tap = this;
    network.valve = this;
  }

  /** The last txn that was sent over the connection of a packet, in a snapshot or by itself, up to now; 0 for none. */
  lastTxnOver(connection: number): number {
    return this.#lastTxns.get(connection) ?? 0;
  }

  /** Calls `onSeen` once, in the middle of the event that sends or delivers the packet. */
  onPacket(match: PacketMatch, onSeen: (event: WireEvent) => void): void {
    this.#watches.push({ match, onSeen });
  }

  /** Cuts the link from one server to another at the first packet that matches; see `Stage.cut`. */
  cut(from: VirtualServer, to: VirtualServer, match: PacketMatch, place: CutPlace, onCut: () => void): void {
    this.#cuts.push({ from: from.serverId, to: to.serverId, match: { ...match, from, to }, place, onCut });
  }

  /** Reopens all links. Streams that have lost something break. */
  heal(): void {
    this.#cuts = [];
    this.#closed.clear();
    this.#running.clear();
    for (const end of this.#network.openEnds) if (this.#holed.has(end.connection)) end.breakStream();
    this.#holed.clear();
  }

  /* --------------------------------------------------------------------------------------------- the network ---- */

  onOpen(connection: number, dialler: string, host: string, port: number): void {
    this.#others?.onOpen(connection, dialler, host, port);
    this.#eyes.onOpen(connection, dialler, host, port);
    const from = this.#serverOf(dialler);
    const to = this.#serverOf(host);
    if (from !== null && to !== null) this.#ends.set(connection, [from, to]);
  }

  onBytes(connection: number, from: string, stage: 'sent' | 'received', bytes: Uint8Array): void {
    this.#others?.onBytes(connection, from, stage, bytes);
    this.#writeBytes = bytes.length;
    this.#eyes.onBytes(connection, from, stage, bytes);
  }

  onClose(connection: number): void {
    this.#others?.onClose(connection);
    this.#eyes.onClose(connection);
    this.#ends.delete(connection);
  }

  admit(connection: number, from: string, size: number): number {
    const ends = this.#ends.get(connection);
    if (ends === undefined) return size;
    const source = this.#serverOf(from);
    const way = `${source}>${source === ends[0] ? ends[1] : ends[0]}`;
    let passing = this.#closed.has(way) ? 0 : size;
    const running = this.#running.get(connection);
    if (running !== undefined && running.cut.from === source) {
      passing = Math.min(passing, running.left);
      running.left -= passing;
      if (running.left === 0) {
        this.#running.delete(connection);
        this.#closed.add(way);
        running.cut.onCut();
      }
    }
    if (passing < size) this.#holed.add(connection);
    return passing;
  }

  #onEvent(event: WireEvent, size: number, behind: number): void {
    const line = describe(event);
    if (line !== null) this.#onLine(`${this.#network.timeline.nowMs.toFixed(3)} ${line}`);
    if (event.kind === 'leader-packet' && event.stage === 'sent') {
      const { packet } = event;
      if (packet.type === PacketType.snap) this.#lastTxns.set(event.connection, packet.zxid);
      else if ('entry' in packet) this.#lastTxns.set(event.connection, packet.entry.header.zxid);
    }
    const seen = this.#watches.filter(({ match }) => matches(match, event));
    if (seen.length > 0) {
      this.#watches = this.#watches.filter((watch) => !seen.includes(watch));
      for (const { onSeen } of seen) onSeen(event);
    }
    const cut = this.#cuts.find(({ match }) => matches(match, event));
    if (cut === undefined) return;
    this.#cuts = this.#cuts.filter((other) => other !== cut);
    // `admit` is called next, for the same write.
    const start = this.#writeBytes - behind - size;
    const passing = cut.place === 'before' ? 0 : size + (cut.place === 'after' ? 0 : cut.place);
    this.#running.set(event.connection, { cut, left: Math.max(0, start + passing) });
  }
}

function matches({ from, to, stage = 'sent', type, is }: PacketMatch, event: WireEvent): boolean {
  if (event.kind !== 'leader-packet' && event.kind !== 'learner-packet') return false;
  return (
    event.stage === stage &&
    (from === undefined || event.from === from.serverId) &&
    (to === undefined || event.to === to.serverId) &&
    (type === undefined || event.packet.type === type) &&
    (is === undefined || is(event.packet))
  );
}

/** `zk3 → zk1 commit 0x100000004`, with two arrows when it has arrived. @returns null for the most frequent packets */
function describe(event: WireEvent): string | null {
  if (event.kind !== 'leader-packet' && event.kind !== 'learner-packet') return null;
  const { packet } = event;
  if (packet.type === PacketType.ping) return null;
  const name = PACKET_NAMES.get(packet.type ?? -1) ?? 'packet';
  const zxid = 'zxid' in packet ? ` 0x${packet.zxid.toString(16)}` : '';
  const txn = 'entry' in packet ? ` 0x${packet.entry.header.zxid.toString(16)}` : '';
  return `zk${event.from} ${event.stage === 'sent' ? '→' : '→→'} zk${event.to} ${name}${zxid}${txn}`;
}

const PACKET_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(PacketType).map(([name, type]) => [type, name]),
);

/** ACK of NEWLEADER: its zxid names the epoch, not a txn. */
export function isNewLeaderAck(packet: LeaderPacket | LearnerPacket): boolean {
  return packet.type === PacketType.ack && counterOf(packet.zxid as Zxid) === 0;
}
