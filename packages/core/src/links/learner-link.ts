/**
 * A leader's end of a stream to one of its learners.
 *
 *     send ──► output of this turn ──► flush ──► stream
 *       └────► backlog ──► behind the slices of a snapshot ──┘
 *
 * Packets arrive in the order in which they were sent. A snapshot leaves in slices, as the learner takes them, and
 * includes changes made to the tree in the meantime; packets sent after it wait in memory until it has left.
 */
import {
  type JuteWriter,
  type LeaderPacket,
  type LearnerPacket,
  PacketType,
  readLearnerPacket,
  type UnknownPacket,
  writeLeaderPacket,
  writeQuorumPacket,
  writeSnapSignature,
  type Zxid,
} from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { LearnerMeter } from '../base/meters/learner-meters.ts';
import type { ByteStream, StreamEvents } from '../base/ports.ts';
import type { Flushable } from '../base/turn.ts';
import type { Database } from '../tree/database.ts';
import { SnapshotWriter } from '../tree/snapshot-writer.ts';
import { ConnectionOutput } from './connection-output.ts';
import { LINK_KEPT_BYTES_MAX, type LinkHost } from './link-host.ts';
import { OutputPool } from './output-pool.ts';
import { PacketBacklog } from './packet-backlog.ts';
import { PacketInput } from './packet-input.ts';

export interface LearnerLinkEvents {
  onPacket(packet: LearnerPacket): void;
  /**
   * The learner has taken nearly everything: more may be sent. If so, called after each turn in which something was
   * sent; otherwise as soon as it becomes true.
   */
  onRoom(): void;
  /** The learner has taken bytes that did not fit before, so it is alive. */
  onProgress(): void;
  /** Called once, as the last event, unless `close` was called. */
  onLinkClosed(reason: string): void;
}

/** Bytes in transit from which history that can wait must not be sent. */
const BYTES_HIGH = 1024 * 1024;
/** Bytes in transit, besides one txn of maximum length, at which the learner is disconnected as too slow. */
export const LINK_OUTPUT_BYTES_MAX: number = 256 * 1024 * 1024;
/** Bytes of a snapshot written per turn: about a millisecond of work. */
const SLICE_BYTES = 256 * 1024;

export class LearnerLink implements StreamEvents, Flushable {
  readonly #stream: ByteStream;
  readonly #host: LinkHost;
  readonly #events: LearnerLinkEvents;
  readonly #input: PacketInput<LearnerPacket>;
  readonly #output: ConnectionOutput;
  #snapshot: SnapshotWriter | null = null;
  readonly #backlog = new PacketBacklog();
  /** `flush` is called at the end of this turn. */
  #isAwaitingFlush = false;
  /** Something was sent since `onRoom` was last called. */
  #owesRoom = false;
  #hasSent = false;
  /** Null until the learner is identified. */
  meter: LearnerMeter | null = null;
  /** Packets that the stream has not taken; below, when the first of them was sent. */
  #queuedPackets = 0;
  #queuedSinceMs = 0;
  #isOpen = true;

  constructor(stream: ByteStream, host: LinkHost, events: LearnerLinkEvents) {
    this.#stream = stream;
    this.#host = host;
    this.#events = events;
    this.#output = new ConnectionOutput(stream, new OutputPool(LINK_KEPT_BYTES_MAX));
    this.#input = new PacketInput(host.fieldBytesMax, readLearnerPacket, {
      onPacket: (packet) => events.onPacket(packet),
      onReceived: () => {},
      onFault: (reason) => this.#onFault(reason),
      onEnd: (reason) => this.#onEnd(reason),
    });
  }

  get remote(): ByteStream['remote'] {
    return this.#stream.remote;
  }

  /** Bytes that the learner has not taken yet, excluding the unwritten part of a snapshot. */
  get queuedBytes(): number {
    return this.#output.queuedBytes + this.#backlog.bytes;
  }

  /** True while the learner keeps up; false until a snapshot has left. */
  get hasRoom(): boolean {
    return this.#isOpen && this.#snapshot === null && this.queuedBytes < BYTES_HIGH;
  }

  /* ------------------------------------------------------------------------------------------- sending ---- */

  send(packet: Exclude<LeaderPacket, UnknownPacket>): void {
    if (!this.#isOpen) return;
    writeLeaderPacket(this.#writer(), packet);
    this.#onWritten();
  }

  /** PROPOSAL. The payload is copied. */
  sendProposal(zxid: Zxid, payload: Uint8Array): void {
    this.#sendTxn(PacketType.proposal, zxid, payload);
  }

  /** INFORM. The payload is copied. */
  sendInform(zxid: Zxid, payload: Uint8Array): void {
    this.#sendTxn(PacketType.inform, zxid, payload);
  }

  /** Sends SNAP and the database. The zxid must not be earlier than the last applied one. */
  sendSnapshot(database: Database, zxid: Zxid): void {
    assert(!this.#isBusy, 'a learner is sent one snapshot, and nothing waits in front of it');
    if (!this.#isOpen) return;
    this.#snapshot = new SnapshotWriter(database);
    assert(zxid >= this.#snapshot.zxid, 'a snapshot is named by what it holds');
    writeLeaderPacket(this.#output.writer(), { type: PacketType.snap, zxid });
    this.#onWritten();
  }

  #sendTxn(type: typeof PacketType.proposal | typeof PacketType.inform, zxid: Zxid, payload: Uint8Array): void {
    if (!this.#isOpen) return;
    writeQuorumPacket(this.#writer(), type, zxid, payload);
    this.#onWritten();
  }

  /** Packets sent now have to wait. */
  get #isBusy(): boolean {
    return this.#snapshot !== null || !this.#backlog.isEmpty;
  }

  #writer(): JuteWriter {
    return this.#isBusy ? this.#backlog.writer() : this.#output.writer();
  }

  #onWritten(): void {
    this.#owesRoom = true;
    this.#hasSent = true;
    if (this.#queuedPackets++ === 0) this.#queuedSinceMs = this.#host.turn.startedMs();
    this.#awaitFlush();
    if (this.queuedBytes <= LINK_OUTPUT_BYTES_MAX + this.#host.fieldBytesMax) return;
    const reason = `the learner does not read: ${this.queuedBytes} bytes are queued for it`;
    this.#give();
    this.#host.turn.defer(() => this.#input.onClosed(reason));
  }

  #awaitFlush(): void {
    if (this.#isAwaitingFlush) return;
    this.#isAwaitingFlush = true;
    this.#host.turn.onOutput(this);
  }

  /** Hands the turn's output to the stream, and one slice of what waits. */
  flush(): void {
    this.#isAwaitingFlush = false;
    this.#pump();
    // What `onRoom` sends still belongs to this turn.
    while (this.#maybeSignalRoom() && this.#isAwaitingFlush) {
      this.#isAwaitingFlush = false;
      this.#pump();
    }
  }

  #pump(): void {
    if (!this.#isOpen) return;
    const packets = this.#queuedPackets;
    if (packets > 0) this.meter?.queueLength.add(packets);
    this.#giveOutput();
    if (packets === 0 || this.#isBusy || this.#output.isBackedUp) return;
    this.meter?.queueTime.add((this.#host.turn.startedMs() - this.#queuedSinceMs) * 1000);
    this.#queuedPackets = 0;
  }

  #giveOutput(): void {
    this.#output.flush();
    if (!this.#isBusy || this.#output.isBackedUp) return;
    const writer = this.#output.writer();
    if (this.#snapshot === null) this.#backlog.moveTo(writer, SLICE_BYTES);
    else if (this.#snapshot.writeSlice(writer, SLICE_BYTES)) {
      writeSnapSignature(writer);
      this.#snapshot = null;
    }
    this.#output.flush();
    // The stream may take data as fast as it is produced: without this, the whole snapshot would be written in one
    // turn.
    if (this.#isBusy && !this.#output.isBackedUp) this.#awaitFlush();
  }

  /** @returns true when `onRoom` was called */
  #maybeSignalRoom(): boolean {
    if (!this.#owesRoom || !this.hasRoom) return false;
    this.#owesRoom = false;
    this.#events.onRoom();
    return true;
  }

  /* ---------------------------------------------------------------------------------- events of the stream ---- */

  onBytes(chunk: Uint8Array): void {
    if (this.#isOpen) this.#input.onBytes(chunk);
  }

  onDrain(): void {
    this.#output.onDrain();
    if (!this.#isOpen) return;
    this.#events.onProgress();
    this.#pump();
    this.#maybeSignalRoom();
  }

  onClosed(reason: string): void {
    this.#isOpen = false;
    this.#discard();
    this.#input.onClosed(reason);
  }

  /* ------------------------------------------------------------------------------------------- closing ---- */

  /**
   * Closes the link; no event follows. What was sent in this turn still leaves, if the learner has taken everything
   * before it: it may be the packet that says that the leader steps down.
   */
  close(): void {
    this.#input.stop();
    if (!this.#isOpen) return;
    // If nothing was sent, destroy the stream: a stranger may never close its end.
    if (this.#hasSent && !this.#isBusy && !this.#output.isBackedUp) {
      this.#output.flush();
      this.#isOpen = false;
      this.#stream.end();
    } else {
      this.#give();
    }
  }

  #onFault(reason: string): void {
    this.#give();
    this.#events.onLinkClosed(reason);
  }

  #onEnd(reason: string): void {
    this.#isOpen = false;
    this.#events.onLinkClosed(reason);
  }

  /** Destroys the stream; unsent output is discarded. */
  #give(): void {
    this.#isOpen = false;
    this.#discard();
    this.#stream.destroy();
  }

  #discard(): void {
    this.#output.discard();
    this.#backlog.clear();
    this.#snapshot?.release();
    this.#snapshot = null;
  }
}
