import type {
  ByteStream,
  ConnectEvents,
  Endpoint,
  ListenEvents,
  Network,
  PeerAddress,
  PeerCertificate,
  StreamEvents,
} from '@meerkat/core';
import type { VirtualEnd, VirtualNetwork } from './virtual-network.ts';

/** What delivers events to a process: at once, later while it is stopped, never once it is gone. */
export interface EventDoor {
  deliver(event: () => void): void;
  /** As an event of its own, as every completion of an effect. */
  deliverLater(event: () => void): void;
}

/** The network of one process on a virtual host. */
export class ServerNetwork implements Network {
  readonly #network: VirtualNetwork;
  readonly #host: string;
  readonly #door: EventDoor;

  constructor(network: VirtualNetwork, host: string, door: EventDoor) {
    this.#network = network;
    this.#host = host;
    this.#door = door;
  }

  /** Every address is this host's. */
  listen(at: Endpoint, events: ListenEvents): { close(): void } {
    let close = (): void => {};
    let isClosed = false;
    if (this.#network.isListening(this.#host, at.port)) {
      this.#door.deliverLater(() => {
        if (!isClosed) events.onListenFailed('EADDRINUSE');
      });
    } else {
      close = this.#network.listen(
        this.#host,
        at.port,
        (end) =>
          this.#door.deliver(() => {
            if (isClosed) end.destroy();
            else this.open(end, (stream) => events.onAccepted(stream));
          }),
        () =>
          this.#door.deliver(() => {
            if (!isClosed) events.onListenFailed('EINVAL');
          }),
      );
      this.#door.deliverLater(() => {
        if (!isClosed) events.onListening();
      });
    }
    return {
      close: () => {
        isClosed = true;
        close();
      },
    };
  }

  connect(to: Endpoint, events: ConnectEvents): { cancel(): void } {
    let isOver = false;
    let stream: ServerStream | null = null;
    const end = this.#network.connect(this.#host, to.host, to.port, {
      onOpen: () =>
        this.#door.deliver(() => {
          if (isOver) return;
          isOver = true;
          stream = new ServerStream(end, this.#addressOf(end), this.#door);
          stream.owner = events.onConnected(stream);
        }),
      onFailed: (failure) =>
        this.#door.deliver(() => {
          if (isOver) return;
          isOver = true;
          events.onConnectFailed(failure === 'refused' ? 'refused' : 'ETIMEDOUT');
        }),
      onBytes: (chunk) => this.#door.deliver(() => stream?.deliverBytes(chunk)),
      onDrain: () => this.#door.deliver(() => stream?.owner?.onDrain()),
      onClosed: (reason) => this.#door.deliver(() => stream?.owner?.onClosed(reason)),
    });
    return {
      cancel: () => {
        if (isOver) return;
        isOver = true;
        end.destroy();
      },
    };
  }

  /** Hands the stream of an accepted end to its owner. */
  open(end: VirtualEnd, accept: (stream: ByteStream) => StreamEvents): void {
    const stream = new ServerStream(end, this.#addressOf(end), this.#door);
    const events = accept(stream);
    stream.owner = events;
    end.listen({
      onBytes: (chunk) => this.#door.deliver(() => stream.deliverBytes(chunk)),
      onDrain: () => this.#door.deliver(() => events.onDrain()),
      onClosed: (reason) => this.#door.deliver(() => events.onClosed(reason)),
    });
  }

  #addressOf(end: VirtualEnd): PeerAddress {
    const ip = this.#network.ipOf(end.peerHost);
    return { ip, host: ip.join('.'), port: end.peerPort };
  }
}

/** Fills memory before it is read into. */
const GARBAGE = 0xdb;

class ServerStream implements ByteStream {
  readonly remote: PeerAddress;
  readonly certificate: PeerCertificate | null;
  /** Notified when `destroy` closes the stream. */
  owner: StreamEvents | null = null;
  readonly #end: VirtualEnd;
  readonly #door: EventDoor;
  #room: (() => Uint8Array) | null = null;

  constructor(end: VirtualEnd, remote: PeerAddress, door: EventDoor) {
    this.#end = end;
    this.remote = remote;
    this.certificate = end.peerCertificate;
    this.#door = door;
  }

  get queuedBytes(): number {
    return this.#end.queuedBytes;
  }

  write(bytes: Uint8Array): void {
    this.#end.write(bytes);
  }

  end(): void {
    this.#end.end();
  }

  destroy(): void {
    if (this.#end.isClosed) return;
    this.#end.destroy();
    this.#door.deliverLater(() => this.owner?.onClosed('closed here'));
  }

  pause(): void {
    this.#end.pause();
  }

  resume(): void {
    this.#end.resume();
  }

  readInto(room: () => Uint8Array): void {
    this.#room = room;
  }

  /** Reads into the core's memory, and overwrites all of it first: code that still uses old bytes there fails. */
  deliverBytes(bytes: Uint8Array): void {
    if (this.#room === null) {
      this.owner?.onBytes(bytes);
      return;
    }
    for (let at = 0; at < bytes.length; ) {
      const room = this.#room().fill(GARBAGE);
      const chunk = room.subarray(0, bytes.length - at);
      chunk.set(bytes.subarray(at, at + chunk.length));
      at += chunk.length;
      this.owner?.onBytes(chunk);
    }
  }
}
