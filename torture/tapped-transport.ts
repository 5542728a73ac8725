import {
  makeNodeTransport,
  type Target,
  type Transport,
  type TransportEvents,
  type TransportStream,
} from '@meerkat/client';
import type { ClientTap } from '@meerkat/simulator';
import { hostOf, type MakeTap } from './network.ts';

/** Plain sockets with a tap that sees the bytes of each connection before they are handled. */
export class TappedTransport implements Transport {
  readonly #sockets: Transport = makeNodeTransport();
  readonly #serverAt: (host: string, port: number) => number;
  readonly #makeTap: MakeTap;

  /** @param serverAt resolves a target of the connect string to a server */
  constructor(serverAt: (host: string, port: number) => number, makeTap: MakeTap) {
    this.#serverAt = serverAt;
    this.#makeTap = makeTap;
  }

  resolve(host: string): Promise<readonly string[]> {
    return this.#sockets.resolve(host);
  }

  connect(target: Target, events: TransportEvents): TransportStream {
    const tap = this.#makeTap(hostOf(this.#serverAt(target.host, target.port)));
    const stream = this.#sockets.connect(target, {
      onOpen: () => events.onOpen(),
      onBytes: (chunk) => {
        tap.onReceived(chunk);
        events.onBytes(chunk);
      },
      onClosed: (failure, detail) => {
        tap.onClosed();
        events.onClosed(failure, detail);
      },
    });
    return new TappedStream(stream, tap);
  }

  probe(target: Target, word: string, timeoutMs: number): Promise<string> {
    return this.#sockets.probe(target, word, timeoutMs);
  }
}

class TappedStream implements TransportStream {
  readonly #stream: TransportStream;
  readonly #tap: ClientTap;

  constructor(stream: TransportStream, tap: ClientTap) {
    this.#stream = stream;
    this.#tap = tap;
  }

  write(bytes: Uint8Array): boolean {
    this.#tap.onSent(bytes);
    return this.#stream.write(bytes);
  }

  destroy(): void {
    this.#tap.onClosed();
    this.#stream.destroy();
  }
}
