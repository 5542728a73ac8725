import type { Clock, Target, Transport, TransportEvents, TransportStream } from '@meerkat/client';
import type { Timeline } from './timeline.ts';
import type { VirtualEnd, VirtualNetwork } from './virtual-network.ts';

/** Virtual time, as a client sees it. */
export function makeClientClock(timeline: Timeline): Clock {
  return {
    monotonicMs: () => timeline.nowMs,
    schedule: (delayMs, callback) => timeline.after(delayMs, callback),
    // The world drains promises between events, so the next event of this moment comes after them.
    defer: (callback) => void timeline.after(0, callback),
  };
}

/** The way of a client on one virtual host to servers on others. */
export class VirtualTransport implements Transport {
  readonly #network: VirtualNetwork;
  readonly #timeline: Timeline;
  readonly #host: string;

  constructor(network: VirtualNetwork, timeline: Timeline, host: string) {
    this.#network = network;
    this.#timeline = timeline;
    this.#host = host;
  }

  /** A host is its own address. */
  resolve(host: string): Promise<readonly string[]> {
    return Promise.resolve([host]);
  }

  connect(target: Target, events: TransportEvents): TransportStream {
    const end = this.#network.connect(this.#host, target.address, target.port, {
      onOpen: () => events.onOpen(),
      onFailed: (failure) => events.onClosed(failure, `connection ${failure}`),
      onBytes: (chunk) => events.onBytes(chunk),
      onDrain: () => {},
      onClosed: (reason) => events.onClosed(reason === 'closed by peer' ? null : 'unreachable', reason),
    });
    return new ClientStream(end);
  }

  probe(target: Target, word: string, timeoutMs: number): Promise<string> {
    return new Promise((resolve, reject) => {
      let answer = '';
      const end = this.#network.connect(this.#host, target.address, target.port, {
        onOpen: () => end.write(new TextEncoder().encode(word)),
        onFailed: (failure) => reject(new Error(`connection ${failure}`)),
        onBytes: (chunk) => {
          answer += new TextDecoder().decode(chunk);
        },
        onDrain: () => {},
        onClosed: () => resolve(answer),
      });
      this.#timeline.after(timeoutMs, () => {
        end.destroy();
        reject(new Error(`no answer within ${timeoutMs} ms`));
      });
    });
  }
}

class ClientStream implements TransportStream {
  readonly #end: VirtualEnd;

  constructor(end: VirtualEnd) {
    this.#end = end;
  }

  write(bytes: Uint8Array): boolean {
    // The network copies.
    this.#end.write(bytes);
    return true;
  }

  destroy(): void {
    this.#end.destroy();
  }
}
