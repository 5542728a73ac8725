import {
  ELECTION_FRAME_BYTES_MAX,
  getInt,
  HELLO_ADDRESS_BYTES_MAX,
  type HostPort,
  JuteReader,
  JuteWriter,
  putInt,
  readElectionHello,
} from '@meerkat/protocol';
import type { EndEvents, VirtualEnd } from '../virtual-network.ts';
import { type ApacheHost, ApacheTimers, memberOf } from './apache-host.ts';

/**
 * The election connections of 3.8.0 (QuorumCnxManager): one per server, dialled by the one with the higher id; a queue
 * for one message each, where a newer message replaces an older one; the last message is resent over a new connection.
 */
export class ApacheElectionSockets {
  readonly #host: ApacheHost;
  readonly #timers: ApacheTimers;
  readonly #onMessage: (from: number, bytes: Uint8Array) => void;
  readonly #workers = new Map<number, VirtualEnd>();
  /** Queued messages by server id; no entry for a server that was never sent a message. */
  readonly #queues = new Map<number, Uint8Array | null>();
  readonly #lastSent = new Map<number, Uint8Array>();
  readonly #dialing = new Set<number>();
  readonly #ends = new Set<VirtualEnd>();
  #unlisten: () => void = () => {};
  #isClosed = false;

  constructor(host: ApacheHost, onMessage: (from: number, bytes: Uint8Array) => void) {
    this.#host = host;
    this.#timers = new ApacheTimers(host.timeline);
    this.#onMessage = onMessage;
  }

  open(): void {
    const { network, hostName, membership, serverId } = this.#host;
    const port = memberOf(membership, serverId)?.addresses[0]?.electionPort ?? 0;
    this.#unlisten = network.listen(hostName, port, (end) => end.listen(this.#accept(end)));
  }

  close(): void {
    this.#isClosed = true;
    this.#unlisten();
    this.#timers.cancelAll();
    for (const end of this.#ends) end.end();
    this.#workers.clear();
  }

  send(to: number, bytes: Uint8Array): void {
    this.#queues.set(to, bytes);
    if (this.#workers.has(to)) this.#flush(to);
    else this.#connectOne(to, null);
  }

  /** Whether the queue of at least one peer is empty, or there is none. */
  get haveDelivered(): boolean {
    return this.#queues.size === 0 || [...this.#queues.values()].includes(null);
  }

  connectAll(): void {
    for (const id of this.#queues.keys()) this.#connectOne(id, null);
  }

  isConnected(id: number): boolean {
    return this.#workers.has(id);
  }

  #flush(to: number): void {
    const end = this.#workers.get(to);
    const bytes = this.#queues.get(to) ?? null;
    if (end === undefined || bytes === null) return;
    this.#queues.set(to, null);
    this.#lastSent.set(to, bytes);
    end.write(frameOf(bytes));
  }

  #connectOne(id: number, announced: HostPort | null): void {
    if (this.#isClosed || this.#workers.has(id) || this.#dialing.has(id)) return;
    const { network, hostName, membership, serverId, timings } = this.#host;
    const address = memberOf(membership, id)?.addresses[0];
    const host = announced?.host ?? address?.host;
    const port = announced?.port ?? address?.electionPort;
    if (host === undefined || port === undefined) {
      this.#host.warn(`server ${id} is in no configuration and cannot be dialled`);
      return;
    }
    this.#dialing.add(id);
    const stop = this.#timers.after(timings.electionConnectMs, () => {
      this.#dialing.delete(id);
      end.destroy();
    });
    const worker = this.#makeWorker(id, () => end);
    const end: VirtualEnd = network.connect(hostName, host, port, {
      onBytes: (chunk) => worker.onBytes(chunk),
      onDrain: () => {},
      onClosed: (reason) => worker.onClosed(reason),
      onOpen: () => {
        stop();
        this.#dialing.delete(id);
        if (this.#isClosed) {
          end.end();
          return;
        }
        const own = memberOf(membership, serverId)?.addresses[0];
        end.write(helloOf(serverId, `${own?.host}:${own?.electionPort}`));
        if (id > serverId) end.end();
        else this.#start(id, end);
      },
      onFailed: () => {
        stop();
        this.#dialing.delete(id);
      },
    });
  }

  #start(id: number, end: VirtualEnd): void {
    const old = this.#workers.get(id);
    this.#workers.set(id, end);
    this.#ends.add(end);
    old?.end();
    if ((this.#queues.get(id) ?? null) === null) {
      const last = this.#lastSent.get(id);
      if (last !== undefined) end.write(frameOf(last));
      else if (!this.#queues.has(id)) this.#queues.set(id, null);
    }
    this.#flush(id);
  }

  #accept(end: VirtualEnd): EndEvents {
    const { serverId, timings } = this.#host;
    this.#ends.add(end);
    let bytes = new Uint8Array(0);
    let worker: EndEvents | null = null;
    const refuse = () => {
      stop();
      end.end();
    };
    const stop = this.#timers.after(timings.tickTimeMs * timings.syncLimit, refuse);
    return {
      onBytes: (chunk) => {
        if (worker !== null) {
          worker.onBytes(chunk);
          return;
        }
        bytes = concat(bytes, chunk);
        const length = this.#measureHello(bytes);
        if (length === null) return;
        const hello = length < 0 ? null : readElectionHello(new JuteReader(bytes.slice(0, length)));
        if (hello === null || hello.serverId === null) {
          refuse();
          return;
        }
        stop();
        const id = hello.serverId;
        if (id === serverId) {
          this.#host.complain('a hello names the receiver itself: it is logged, and the connection never used');
          return;
        }
        if (id < serverId) {
          // The server with the higher id dials, even if the other one connected first.
          this.#workers.get(id)?.end();
          this.#workers.delete(id);
          end.end();
          this.#connectOne(id, hello.addresses[0] ?? null);
          return;
        }
        worker = this.#makeWorker(id, () => end);
        this.#start(id, end);
        const rest = bytes.slice(length);
        if (rest.length > 0) worker.onBytes(rest);
      },
      onDrain: () => {},
      onClosed: (reason) => {
        stop();
        this.#ends.delete(end);
        worker?.onClosed(reason);
      },
    };
  }

  /**
   * Waits for the complete header, but reads the addresses with one call, and refuses them if they are incomplete.
   *
   * @returns null while more bytes are needed, −1 when the hello is refused
   */
  #measureHello(bytes: Uint8Array): number | null {
    if (bytes.length >= 8 && getInt(bytes, 0) >= 0) return 8;
    if (bytes.length <= HELLO_HEADER_BYTES) return null;
    const length = getInt(bytes, HELLO_HEADER_BYTES - 4);
    if (length <= 0 || length > HELLO_ADDRESS_BYTES_MAX) {
      this.#host.complain(`a hello has an address of ${length} bytes: 3.8.0 closes the connection`);
      return -1;
    }
    if (bytes.length < HELLO_HEADER_BYTES + length) {
      // The network may split a single write, so this need not be the sender's fault.
      this.#host.warn(`a hello came in pieces: only ${bytes.length} of ${HELLO_HEADER_BYTES + length} bytes were read`);
      return -1;
    }
    return HELLO_HEADER_BYTES + length;
  }

  #makeWorker(id: number, end: () => VirtualEnd): EndEvents {
    let bytes = new Uint8Array(0);
    return {
      onBytes: (chunk) => {
        bytes = concat(bytes, chunk);
        while (bytes.length >= 4 && this.#workers.get(id) === end()) {
          const length = getInt(bytes, 0);
          if (length <= 0 || length > ELECTION_FRAME_BYTES_MAX) {
            this.#host.complain(`server ${id} sent a frame of ${length} bytes: 3.8.0 closes the connection`);
            this.#workers.delete(id);
            end().end();
            return;
          }
          if (bytes.length < 4 + length) return;
          const message = bytes.slice(4, 4 + length);
          bytes = bytes.slice(4 + length);
          this.#onMessage(id, message);
        }
      },
      onDrain: () => {},
      onClosed: () => {
        this.#ends.delete(end());
        if (this.#workers.get(id) === end()) this.#workers.delete(id);
      },
    };
  }
}

const HELLO_HEADER_BYTES = 20;
/** PROTOCOL_VERSION_V1 */
const HELLO_VERSION = -65536;

function helloOf(serverId: number, address: string): Uint8Array {
  const writer = new JuteWriter();
  writer.long(HELLO_VERSION);
  writer.long(serverId);
  writer.ustring(address);
  return writer.toBytes();
}

function frameOf(bytes: Uint8Array): Uint8Array {
  const frame = new Uint8Array(4 + bytes.length);
  putInt(frame, 0, bytes.length);
  frame.set(bytes, 4);
  return frame;
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
