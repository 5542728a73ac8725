/**
 * A learner's end of the stream to its leader.
 *
 *     stream ──► packets ──► onPacket
 *                   └─ SNAP: a new database ──► onSnapshot
 *
 * There are no events while it is paused; backpressure stops the leader eventually, and what it sends stays in the
 * network.
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
   * A packet arrived. Byte fields of the packet (`payload`, those inside `entry`) are views of memory that is not
   * written to until `onApplied` has been called for the txn. They retain their chunk of the stream.
   */
  onPacket(packet: LeaderPacket): void;
  /** The snapshot announced by a SNAP packet has arrived completely; its `lastZxid` is that of the packet. */
  onSnapshot(database: Database): void;
  /** Called once, as the last event, after everything that had arrived; not called after `close`. */
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
  /** Zxid of the last txn passed to `onPacket`. */
  #lastZxid: Zxid = ZXID_NONE;
  #snapshot: SnapReceiver | null = null;
  #isAwaitingFlush = false;
  #isOpen = true;

  /** @param makeDatabase makes an empty database for a snapshot */
  constructor(stream: ByteStream, host: LinkHost, makeDatabase: () => Database, events: LeaderLinkEvents) {
    this.#stream = stream;
    this.#host = host;
    this.#makeDatabase = makeDatabase;
    this.#events = events;
    this.#output = new ConnectionOutput(stream, new OutputPool(LINK_KEPT_BYTES_MAX));
    // A proposal may be committed even if this server refuses it: accept any record size. Apache leaders do not limit
    // txns, and neither do their logs.
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

  /** Everything up to `zxid` is applied: views of those packets are no longer used. */
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
    const reason = `the leader does not read: ${queuedBytes} bytes are queued for it`;
    this.#host.turn.defer(() => this.#input.onClosed(reason));
  }

  flush(): void {
    this.#isAwaitingFlush = false;
    if (this.#isOpen) this.#output.flush();
  }

  /* ----------------------------------------------------------------------------------------- receiving ---- */

  /** No events from now on, not even for packets that arrived together with the current one. */
  pause(): void {
    if (this.#input.isPaused) return;
    this.#input.pause();
    if (this.#isOpen) this.#stream.pause();
  }

  /** Events that were held back follow first, in a separate event. */
  resume(): void {
    if (!this.#input.isPaused) return;
    this.#input.resume();
    if (this.#isOpen) this.#stream.resume();
    if (this.#input.isWaiting) this.#host.turn.defer(() => this.#input.advance());
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

  /**
   * Closes the link; no event follows. What was sent in this turn still leaves, if the leader has taken everything
   * before it.
   */
  close(): void {
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

  /** Destroys the stream; unsent output is discarded. */
  #give(): void {
    this.#isOpen = false;
    this.#output.discard();
    this.#stream.destroy();
  }
}
