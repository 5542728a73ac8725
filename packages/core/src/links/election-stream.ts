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
  /** Who dialled; told once, before everything else, by a stream that expects it. The owner may change here. */
  onHello(stream: ElectionStream, hello: ElectionHello): void;
  onNotification(stream: ElectionStream, notification: ElectionNotification): void;
  onProbe(stream: ElectionStream, probe: ElectionProbe): void;
  /** It can take another notification. */
  onRoom(stream: ElectionStream): void;
  /** Told once, as the last event, unless this end closed it. */
  onStreamClosed(stream: ElectionStream, reason: string): void;
}

/**
 * One connection of the election port, at either end.
 *
 *     hello, then frames := int length (1 to 524288), notification | int probe
 *
 * A frame of another length ends the connection; one that holds no notification is ignored.
 */
export class ElectionStream implements StreamEvents {
  owner: ElectionStreamOwner;
  /** Until when the other end may say who it is. */
  readonly helloUntilMs: number;
  readonly #stream: ByteStream;
  readonly #input = new InputBuffer();
  readonly #reader = new JuteReader();
  #expectsHello: boolean;
  #isOpen = true;
  #isHeld = false;

  /** @param helloUntilMs the other end has dialled, and says who it is by then; null when this one has */
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

  /** False while the last notification has not left: a later one would wait behind it, and be old by then. */
  get hasRoom(): boolean {
    return this.#stream.queuedBytes === 0;
  }

  /** Says who dials, in one write: Apache's servers read the addresses at once or not at all. */
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

  /** Tells nothing more of what comes, until `release`. */
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

  /** Closes at once; nothing is told. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#input.clear();
    this.#stream.destroy();
  }

  /** Closes after what was sent has left. */
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
    if (length < 0) return this.#fail('it did not begin as a server does');
    this.#reader.reset(bytes, start, start + length);
    this.#input.start = start + length;
    const hello = readElectionHello(this.#reader);
    if (hello === null) return this.#fail('it did not say where it can be reached');
    this.#expectsHello = false;
    this.owner.onHello(this, hello);
    return true;
  }

  #readFrame(): boolean {
    const { bytes, start, end } = this.#input;
    if (end - start < 4) return false;
    const length = getInt(bytes, start);
    if (length < 1 || length > ELECTION_FRAME_BYTES_MAX) return this.#fail(`it sent a frame of the length ${length}`);
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
