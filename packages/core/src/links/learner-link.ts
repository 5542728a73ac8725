/**
 * A leader's end of a stream to one of its learners.
 *
 *     send ──► output of this turn ──► flush ──► stream
 *       └────► backlog ──► behind the slices of a snapshot ──┘
 *
 * What is sent arrives in the order in which it was sent. A snapshot leaves in slices, as the learner takes them, and
 * shows the tree as it has become meanwhile; what is sent behind it waits in memory until it has left.
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
   * The learner has taken nearly all that was sent: more may follow. Told, if so, after each turn in which something
   * was sent, and otherwise as soon as it is so.
   */
  onRoom(): void;
  /** The learner has taken bytes for which there was no room before: it is there. */
  onProgress(): void;
  /** Told once, as the last event, unless `close` was called. */
  onLinkClosed(reason: string): void;
}

/** Bytes on their way from which on history that can wait is not to be sent. */
const BYTES_HIGH = 1024 * 1024;
/** Bytes on their way, besides one txn of the greatest length, at which the learner is too slow to be one. */
export const LINK_OUTPUT_BYTES_MAX: number = 256 * 1024 * 1024;
/** Bytes of a snapshot that are made in a turn: the work of about a millisecond. */
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
  /** Something was sent since `onRoom` was told. */
  #owesRoom = false;
  #hasSent = false;
  /** Null until the learner is known. */
  meter: LearnerMeter | null = null;
  /** Packets that the stream has not taken, and when the first of them was sent. */
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

  /** Bytes that the learner has not taken yet, without what is still to be made of a snapshot. */
  get queuedBytes(): number {
    return this.#output.queuedBytes + this.#backlog.bytes;
  }

  /** True while the learner takes what it is sent; never behind a snapshot that has not left. */
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

  /** SNAP with this zxid, which is not earlier than the last one that is applied, and the database behind it. */
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

  /** What is sent now has to wait. */
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
    const reason = `the learner does not take what it is sent: ${this.queuedBytes} bytes wait for it`;
    this.#give();
    this.#host.turn.defer(() => this.#input.onClosed(reason));
  }

  #awaitFlush(): void {
    if (this.#isAwaitingFlush) return;
    this.#isAwaitingFlush = true;
    this.#host.turn.onOutput(this);
  }

  /** Hands the turn's output to the stream, and a slice of what waits. */
  flush(): void {
    this.#isAwaitingFlush = false;
    this.#pump();
    // What is sent in answer to `onRoom` belongs to this turn too.
    while (this.#maybeTellRoom() && this.#isAwaitingFlush) {
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
    // The stream may take it as fast as it is made: without this the whole of it would be made in one turn.
    if (this.#isBusy && !this.#output.isBackedUp) this.#awaitFlush();
  }

  /** @returns true when it was told */
  #maybeTellRoom(): boolean {
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
    this.#maybeTellRoom();
  }

  onClosed(reason: string): void {
    this.#isOpen = false;
    this.#discard();
    this.#input.onClosed(reason);
  }

  /* ------------------------------------------------------------------------------------------- closing ---- */

  /**
   * Ends the link; no event follows. What was sent in this turn still leaves, if the learner has taken all before: it
   * may be the word that the leader steps down.
   */
  close(_reason: string): void {
    this.#input.stop();
    if (!this.#isOpen) return;
    // Who was told nothing need not read to the end of it: a stranger may never close its end.
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

  /** Gives the stream up. */
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
