import type { ByteStream } from '../base/ports.ts';
import type { MemoryNetwork } from './memory-network.ts';

/** A peer at a separate host that sends and receives raw bytes. */
export class RawPeer {
  readonly streams: ByteStream[] = [];
  readonly received: number[] = [];
  readonly closed: string[] = [];
  readonly #network: MemoryNetwork;
  readonly #host: string;

  constructor(network: MemoryNetwork, host: string) {
    this.#network = network;
    this.#host = host;
  }

  listen(port = 3888): void {
    this.#network
      .portOf(this.#host)
      .listen(
        { host: this.#host, port },
        { onListening() {}, onListenFailed() {}, onAccepted: (stream) => this.#own(stream) },
      );
  }

  connect(host: string, ...writes: Uint8Array[]): void {
    this.#network.portOf(this.#host).connect(
      { host, port: 3888 },
      {
        onConnected: (stream) => {
          for (const bytes of writes) stream.write(bytes);
          return this.#own(stream);
        },
        onConnectFailed: (reason) => this.closed.push(reason),
      },
    );
  }

  #own(stream: ByteStream): { onBytes(chunk: Uint8Array): void; onDrain(): void; onClosed(reason: string): void } {
    this.streams.push(stream);
    return {
      onBytes: (chunk) => this.received.push(...chunk),
      onDrain() {},
      onClosed: (reason) => this.closed.push(reason),
    };
  }
}
