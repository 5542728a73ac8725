/**
 * A learner's end of the stream to its leader.
 *
 *     stream ──► packets ──► onPacket
 *                   └─ SNAP: a new database ──► onSnapshot
 *
 * While it is paused nothing is told, and the leader is stopped at last: what it sends waits in the network.
 */
import {
  type LeaderPacket,
  type LearnerPacket,
  PacketType,
  RECORD_BYTES_MAX,
  readLeaderPacket,
  type UnknownPacket,
  writeLearnerPacket,
  ZXID_NONE,
  type Zxid,
} from '@meerkat/protocol';
import type { ByteStream, StreamEvents } from '../base/ports.ts';
import type { Flushable } from '../base/turn.ts';
import type { Database } from '../tree/database.ts';
import { ConnectionOutput } from './connection-output.ts';
import { LINK_OUTPUT_BYTES_MAX } from './learner-link.ts';
import { LINK_KEPT_BYTES_MAX, type LinkHost } from './link-host.ts';
import { OutputPool } from './output-pool.ts';
import { PacketInput } from './packet-input.ts';
import { ReadMemory } from './read-memory.ts';
import { SnapReceiver } from './snap-receiver.ts';

export interface LeaderLinkEvents {
  /**
   * A packet came. Byte fields of the packet (`payload`, those inside `entry`) are views of memory that nobody writes
   * to before `onApplied` has been told that the txn is applied. They keep their chunk of the stream.
   */
  onPacket(packet: LeaderPacket): void;
  /** The snapshot that a SNAP packet announced is there as a whole; its `lastZxid` is that of the packet. */
  onSnapshot(database: Database): void;
  /** Told once, as the last event, unless `close` was called; behind all that had come before. */
  onLinkClosed(reason: string): void;
}

export class LeaderLink implements StreamEvents, Flushable {
  readonly #stream: ByteStream;
  readonly #host: LinkHost;
  readonly #makeDatabase: () => Database;
  readonly #events: LeaderLinkEvents;
  readonly #input: PacketInput<LeaderPacket>;
  readonly #output: ConnectionOutput;
  readonly #memory: ReadMemory = new ReadMemory();
  /** The last txn that has been told. */
  #lastZxid: Zxid = ZXID_NONE;
  #snapshot: SnapReceiver | null = null;
  #isAwaitingFlush = false;
  #isOpen = true;

  /** @param makeDatabase makes one that is empty, for a snapshot */
  constructor(stream: ByteStream, host: LinkHost, makeDatabase: () => Database, events: LeaderLinkEvents) {
    this.#stream = stream;
    this.#host = host;
    this.#makeDatabase = makeDatabase;
    this.#events = events;
    this.#output = new ConnectionOutput(stream, new OutputPool(LINK_KEPT_BYTES_MAX));
    // What a leader proposes is committed whoever refuses it: one of Apache's bounds nothing, and neither does its log.
    this.#input = new PacketInput(RECORD_BYTES_MAX, readLeaderPacket, {
      onPacket: (packet) => this.#onPacket(packet),
      onReceived: () => this.#onReceived(),
      onFault: (reason) => {
        this.#give();
        events.onLinkClosed(reason);
      },
      onEnd: (reason) => {
        this.#isOpen = false;
        events.onLinkClosed(reason);
      },
    });
    stream.readInto?.(() => this.#input.roomIn(this.#memory, this.#lastZxid));
  }

  /** Everything up to `zxid` is applied, and nobody looks at what was told of it any more. */
  onApplied(zxid: Zxid): void {
    this.#memory.onApplied(zxid);
  }

  get remote(): ByteStream['remote'] {
    return this.#stream.remote;
  }

  /* ------------------------------------------------------------------------------------------- sending ---- */

  send(packet: Exclude<LearnerPacket, UnknownPacket>): void {
    if (!this.#isOpen) return;
    writeLearnerPacket(this.#output.writer(), packet);
    if (!this.#isAwaitingFlush) {
      this.#isAwaitingFlush = true;
      this.#host.turn.onOutput(this);
    }
    const { queuedBytes } = this.#output;
    if (queuedBytes <= LINK_OUTPUT_BYTES_MAX) return;
    this.#give();
    const reason = `the leader does not take what it is sent: ${queuedBytes} bytes wait for it`;
    this.#host.turn.defer(() => this.#input.onClosed(reason));
  }

  flush(): void {
    this.#isAwaitingFlush = false;
    if (this.#isOpen) this.#output.flush();
  }

  /* ----------------------------------------------------------------------------------------- receiving ---- */

  /** From now on nothing is told, not even what came with the packet that is being told. */
  pause(): void {
    if (this.#input.isPaused) return;
    this.#input.pause();
    if (this.#isOpen) this.#stream.pause();
  }

  /** What has been kept back is told first, as an event of its own. */
  resume(): void {
    if (!this.#input.isPaused) return;
    this.#input.resume();
    if (this.#isOpen) this.#stream.resume();
    if (this.#input.isWaiting) this.#host.turn.defer(() => this.#input.goOn());
  }

  #onPacket(packet: LeaderPacket): void {
    if ('entry' in packet) {
      this.#lastZxid = packet.entry.header.zxid;
    } else if (packet.type === PacketType.snap) {
      this.#snapshot = new SnapReceiver(this.#makeDatabase(), packet.zxid);
      this.#input.divert(this.#snapshot);
    }
    this.#events.onPacket(packet);
  }

  #onReceived(): void {
    const { database } = this.#snapshot!;
    this.#snapshot = null;
    this.#events.onSnapshot(database);
  }

  onBytes(chunk: Uint8Array): void {
    if (this.#isOpen) this.#input.onBytes(chunk);
  }

  onDrain(): void {
    this.#output.onDrain();
  }

  onClosed(reason: string): void {
    this.#isOpen = false;
    this.#output.discard();
    this.#input.onClosed(reason);
  }

  /* ------------------------------------------------------------------------------------------- closing ---- */

  /** Ends the link; no event follows. What was sent in this turn still leaves, if the leader has taken all before. */
  close(_reason: string): void {
    this.#input.stop();
    this.#snapshot = null;
    if (!this.#isOpen) return;
    if (this.#output.isBackedUp) {
      this.#give();
      return;
    }
    this.#output.flush();
    this.#isOpen = false;
    this.#stream.end();
  }

  /** Gives the stream up. */
  #give(): void {
    this.#isOpen = false;
    this.#output.discard();
    this.#stream.destroy();
  }
}
