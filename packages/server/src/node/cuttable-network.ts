import type { ConnectEvents, Endpoint, ListenEvents, Network } from '@meerkat/core';
import { LinkStream } from './link-stream.ts';

/** Decides which connections are cut. */
export interface CutHost {
  /** Whether the server that listens at this port cannot be reached. */
  isCutFrom(port: number): boolean;
  /** Called before the server is notified, so that the host can report the failure or choose another port. */
  onListenFailed?(port: number, reason: string): void;
}

/**
 * The network of one server when all servers of an ensemble are on one machine and partitions are to be injected, for
 * tests and development. A cut is applied at the dialing end of each stream between two servers.
 */
export class CuttableNetwork implements Network {
  readonly #sockets: Network;
  readonly #deliver: (event: () => void) => void;
  readonly #host: CutHost;
  /** With the port that each is connected to. */
  readonly #links = new Map<LinkStream, number>();
  /** Connections that wait for the end of a cut, with the port that each leads to. */
  readonly #waiting = new Map<() => void, number>();

  constructor(sockets: Network, deliver: (event: () => void) => void, host: CutHost) {
    this.#sockets = sockets;
    this.#deliver = deliver;
    this.#host = host;
  }

  listen(at: Endpoint, events: ListenEvents): { close(): void } {
    return this.#sockets.listen(at, {
      onListening: () => events.onListening(),
      onListenFailed: (reason) => {
        this.#host.onListenFailed?.(at.port, reason);
        events.onListenFailed(reason);
      },
      onAccepted: (stream) => events.onAccepted(stream),
    });
  }

  /** Behind a cut an attempt is neither accepted nor refused: it lasts until it is cancelled or the cut ends. */
  connect(to: Endpoint, events: ConnectEvents): { cancel(): void } {
    if (!this.#host.isCutFrom(to.port)) return this.#dial(to, events);
    let attempt: { cancel(): void } | null = null;
    const dial = (): void => {
      attempt = this.#dial(to, events);
    };
    this.#waiting.set(dial, to.port);
    return {
      cancel: () => {
        this.#waiting.delete(dial);
        attempt?.cancel();
      },
    };
  }

  /** The answers of `isCutFrom` have changed. */
  onCutsChanged(): void {
    for (const [link, port] of this.#links) {
      if (this.#host.isCutFrom(port)) link.cut();
      else link.heal();
    }
    for (const [dial, port] of this.#waiting) {
      if (this.#host.isCutFrom(port)) continue;
      this.#deliver(() => {
        // It may have been cancelled, or cut again, while the server was paused.
        if (this.#host.isCutFrom(port) || !this.#waiting.delete(dial)) return;
        dial();
      });
    }
  }

  #dial(to: Endpoint, events: ConnectEvents): { cancel(): void } {
    return this.#sockets.connect(to, {
      onConnected: (stream) => {
        const link: LinkStream = new LinkStream(stream, this.#deliver, () => this.#links.delete(link));
        this.#links.set(link, to.port);
        if (this.#host.isCutFrom(to.port)) link.cut();
        link.open((opened) => events.onConnected(opened));
        return link;
      },
      onConnectFailed: (reason) => events.onConnectFailed(reason),
    });
  }
}
