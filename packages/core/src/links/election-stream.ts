import {
  ELECTION_FRAME_BYTES_MAX,
  ELECTION_PROBE_BYTES,
  type ElectionHello,
  type ElectionNotification,
  type ElectionProbe,
  getInt,
  HelloVersion,
  JuteReader,
  JuteWriter,
  measureElectionHello,
  readElectionHello,
  readElectionNotification,
  readElectionProbe,
  writeElectionHello,
  writeElectionNotification,
  writeElectionProbe,
} from '@meerkat/protocol';
import type { ByteStream, Endpoint, StreamEvents } from '../base/ports.ts';
import { InputBuffer } from './input-buffer.ts';
import { isTlsHello, SPEAKS_TLS } from './tls-hello.ts';

export interface ElectionStreamOwner {
  /** Sent by the dialling side. Called once, first, on accepted streams only. The owner may change here. */
  onHello(stream: ElectionStream, hello: ElectionHello): void;
  onNotification(stream: ElectionStream, notification: ElectionNotification): void;
  onProbe(stream: ElectionStream, probe: ElectionProbe): void;
  /** There is room for another notification. */
  onRoom(stream: ElectionStream): void;
  /** Called once, as the last event, unless this end closed it. */
  onStreamClosed(stream: ElectionStream, reason: string): void;
}

/**
 * One connection of the election port, at either end.
 *
 *     hello, then frames := int length (1 to 524288), notification | int probe
 *
 * A frame of any other length closes the connection; a frame without a valid notification is ignored.
 */
export class ElectionStream implements StreamEvents {
  owner: ElectionStreamOwner;
  /** Deadline for the hello of the other end. */
  readonly helloUntilMs: number;
  readonly #stream: ByteStream;
  readonly #input = new InputBuffer();
  readonly #reader = new JuteReader();
  #expectsHello: boolean;
  #isOpen = true;
  #isHeld = false;

  /** @param helloUntilMs deadline for the hello of the other end, which has dialled; null when this end has dialled */
  constructor(stream: ByteStream, helloUntilMs: number | null, owner: ElectionStreamOwner) {
    this.#stream = stream;
    this.#expectsHello = helloUntilMs !== null;
    this.helloUntilMs = helloUntilMs ?? Number.POSITIVE_INFINITY;
    this.owner = owner;
  }

  get remote(): ByteStream['remote'] {
    return this.#stream.remote;
  }

  get certifiedHosts(): readonly string[] | null {
    return this.#stream.certifiedHosts ?? null;
  }

  /** False while the last notification has not left: a later one would queue behind it, and be outdated by then. */
  get hasRoom(): boolean {
    return this.#stream.queuedBytes === 0;
  }

  /** Identifies the dialling server, in one write: Apache servers read the addresses at once or not at all. */
  sendHello(serverId: number, addresses: readonly Endpoint[]): void {
    const writer = new JuteWriter(64);
    const version = addresses.length > 1 ? HelloVersion.multipleAddresses : HelloVersion.singleAddress;
    writeElectionHello(writer, { version, serverId, addresses });
    this.#stream.write(writer.toBytes());
  }

  send(notification: ElectionNotification): void {
    const writer = new JuteWriter();
    const at = writer.beginFrame();
    writeElectionNotification(writer, notification);
    writer.endFrame(at);
    this.#stream.write(writer.toBytes());
  }

  sendProbe(probe: ElectionProbe): void {
    const writer = new JuteWriter(8);
    const at = writer.beginFrame();
    writeElectionProbe(writer, probe);
    writer.endFrame(at);
    this.#stream.write(writer.toBytes());
  }

  /** No events until `release`. */
  hold(): void {
    this.#isHeld = true;
    this.#stream.pause();
  }

  release(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#stream.resume();
    this.#consume();
  }

  /** Closes at once; no event follows. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#input.clear();
    this.#stream.destroy();
  }

  /** Closes after everything sent has left. */
  end(): void {
    this.#stream.end();
  }

  onBytes(chunk: Uint8Array): void {
    if (!this.#isOpen) return;
    this.#input.append(chunk);
    this.#consume();
  }

  #consume(): void {
    while (this.#isOpen && !this.#isHeld && (this.#expectsHello ? this.#readHello() : this.#readFrame()));
  }

  onDrain(): void {
    if (this.#isOpen) this.owner.onRoom(this);
  }

  onClosed(reason: string): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#input.clear();
    this.owner.onStreamClosed(this, reason);
  }

  #readHello(): boolean {
    const { bytes, start, end } = this.#input;
    if (end - start >= 4 && isTlsHello(getInt(bytes, start))) return this.#fail(SPEAKS_TLS);
    const length = measureElectionHello(bytes, start, end);
    if (length === 0) return false;
    if (length < 0) return this.#fail('its hello is invalid');
    this.#reader.reset(bytes, start, start + length);
    this.#input.start = start + length;
    const hello = readElectionHello(this.#reader);
    if (hello === null) return this.#fail('its hello has no valid address');
    this.#expectsHello = false;
    this.owner.onHello(this, hello);
    return true;
  }

  #readFrame(): boolean {
    const { bytes, start, end } = this.#input;
    if (end - start < 4) return false;
    const length = getInt(bytes, start);
    if (length < 1 || length > ELECTION_FRAME_BYTES_MAX) return this.#fail(`it sent a frame of length ${length}`);
    const next = start + 4 + length;
    if (next > end) return false;
    this.#reader.reset(bytes, start + 4, next);
    this.#input.start = next;
    if (length === ELECTION_PROBE_BYTES) {
      const probe = readElectionProbe(this.#reader);
      if (probe !== null) this.owner.onProbe(this, probe);
      return true;
    }
    const notification = readElectionNotification(this.#reader);
    if (notification !== null) this.owner.onNotification(this, notification);
    return true;
  }

  #fail(reason: string): false {
    this.close();
    this.owner.onStreamClosed(this, reason);
    return false;
  }
}
