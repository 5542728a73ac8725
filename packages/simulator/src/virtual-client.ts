import type { Clock, Target, Transport, TransportEvents, TransportStream } from '@meerkat/client';
import type { PeerCertificate } from '@meerkat/core';
import type { Timeline } from './timeline.ts';
import type { VirtualClock } from './virtual-clock.ts';
import type { ConnectEvents, VirtualEnd, VirtualNetwork } from './virtual-network.ts';

/** Virtual time, as a client on a host with this clock sees it. */
export function makeClientClock(timeline: Timeline, clock: VirtualClock): Clock {
  return {
    monotonicMs: () => clock.monotonicMs(),
    schedule: (delayMs, callback) => timeline.after(clock.virtualMs(delayMs), callback),
    // The world drains promises between events, so the next event of this moment comes after them.
    defer: (callback) => void timeline.after(0, callback),
  };
}

/** Sees the bytes of one client connection, in both directions, before they are processed. */
export interface ClientTap {
  onSent(bytes: Uint8Array): void;
  onReceived(bytes: Uint8Array): void;
  onClosed(): void;
}

/** Connects a client on one virtual host to servers on others. */
export class VirtualTransport implements Transport {
  readonly #network: VirtualNetwork;
  readonly #timeline: Timeline;
  readonly #host: string;
  readonly #makeTap: ((server: string) => ClientTap) | null;
  readonly #certificate: PeerCertificate | null;

  /** @param certificate shown by each connection */
  constructor(
    network: VirtualNetwork,
    timeline: Timeline,
    host: string,
    makeTap: ((server: string) => ClientTap) | null = null,
    certificate: PeerCertificate | null = null,
  ) {
    this.#certificate = certificate;
    this.#network = network;
    this.#timeline = timeline;
    this.#host = host;
    this.#makeTap = makeTap;
  }

  /** A host is its own address. */
  resolve(host: string): Promise<readonly string[]> {
    return Promise.resolve([host]);
  }

  connect(target: Target, events: TransportEvents): TransportStream {
    const tap = this.#makeTap?.(target.host) ?? null;
    const timeline = this.#timeline;
    const ends: ConnectEvents = {
      onOpen() {
        timeline.touch();
        events.onOpen();
      },
      onFailed(failure) {
        timeline.touch();
        events.onClosed(failure, `connection ${failure}`);
      },
      onBytes(chunk) {
        timeline.touch();
        tap?.onReceived(chunk);
        events.onBytes(chunk);
      },
      onDrain() {},
      onClosed(reason) {
        timeline.touch();
        tap?.onClosed();
        events.onClosed(reason === 'closed by peer' ? null : 'unreachable', reason);
      },
    };
    const end = this.#network.connect(this.#host, target.address, target.port, ends, this.#certificate);
    return new ClientStream(end, tap);
  }

  probe(target: Target, word: string, timeoutMs: number): Promise<string> {
    return new Promise((resolve, reject) => {
      let answer = '';
      const end = this.#network.connect(this.#host, target.address, target.port, {
        onOpen: () => end.write(new TextEncoder().encode(word)),
        onFailed: (failure) => {
          this.#timeline.touch();
          reject(new Error(`connection ${failure}`));
        },
        onBytes: (chunk) => {
          answer += new TextDecoder().decode(chunk);
        },
        onDrain: () => {},
        onClosed: () => {
          this.#timeline.touch();
          resolve(answer);
        },
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
  readonly #tap: ClientTap | null;

  constructor(end: VirtualEnd, tap: ClientTap | null) {
    this.#end = end;
    this.#tap = tap;
  }

  write(bytes: Uint8Array): boolean {
    this.#tap?.onSent(bytes);
    this.#end.write(bytes);
    return this.#end.queuedBytes === 0;
  }

  destroy(): void {
    this.#tap?.onClosed();
    this.#end.destroy();
  }
}
