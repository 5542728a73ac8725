import type { ConnectEvents, Endpoint, ListenEvents, Network } from '@meerkat/core';
import type { StartOptions } from '@meerkat/server';
import { LinkStream } from './link-stream.ts';

type Decorator = NonNullable<StartOptions['decorateNetwork']>;

/** The network between the servers of an ensemble in this process: sockets of the loopback interface, with cuts. */
export class EnsembleNetwork {
  /** Server ids by the ports of theirs. */
  readonly #owners: ReadonlyMap<number, number>;
  /** The network of each server in its present life, by server id. */
  readonly #members = new Map<number, MemberNetwork>();
  /** Which group each server is in, by server id; those that are not named share one. Null: nothing is cut. */
  #groups: ReadonlyMap<number, number> | null = null;
  #takenPort: TakenPortError | null = null;

  /** @param owners server ids by quorum and election port */
  constructor(owners: ReadonlyMap<number, number>) {
    this.#owners = owners;
  }

  /** A port between servers that could not be listened on; null when all could. */
  get takenPort(): TakenPortError | null {
    return this.#takenPort;
  }

  get isPartitioned(): boolean {
    return this.#groups !== null;
  }

  /** Whether two servers cannot reach each other. */
  isCut(a: number, b: number): boolean {
    return this.#groups !== null && this.#groups.get(a) !== this.#groups.get(b);
  }

  /** What makes this network a server's. Each of its lives asks anew. */
  decoratorOf(serverId: number): Decorator {
    return (sockets, deliver) => {
      const member = new MemberNetwork(sockets, deliver, {
        isCutFrom: (port) => this.isCut(serverId, this.#owners.get(port) ?? serverId),
        onListenFailed: (port, reason) => {
          if (reason === 'EADDRINUSE') this.#takenPort ??= new TakenPortError(port);
        },
      });
      this.#members.set(serverId, member);
      return member;
    };
  }

  /** Lets only servers of one group reach each other; replaces the partition before. */
  partition(groups: readonly (readonly number[])[]): void {
    this.#groups = new Map(groups.flatMap((ids, group) => ids.map((id) => [id, group])));
    this.#onChanged();
  }

  heal(): void {
    this.#groups = null;
    this.#onChanged();
  }

  #onChanged(): void {
    for (const member of this.#members.values()) member.onCutsChanged();
  }
}

/** Another program was quicker. The code is Node's, so that whoever asks for taken ports finds it. */
export class TakenPortError extends Error {
  readonly code = 'EADDRINUSE';

  constructor(port: number) {
    super(`cannot listen for other servers on 127.0.0.1:${port}: it is in use`);
    this.name = 'TakenPortError';
  }
}

interface MemberNetworkHost {
  isCutFrom(port: number): boolean;
  onListenFailed(port: number, reason: string): void;
}

/** The network as one server sees it. Of each stream between two servers, the one that dials holds the cuts. */
class MemberNetwork implements Network {
  readonly #sockets: Network;
  readonly #deliver: (event: () => void) => void;
  readonly #host: MemberNetworkHost;
  /** The port that each leads to. */
  readonly #links = new Map<LinkStream, number>();
  /** Connections that wait for the end of a cut, with the port that each leads to. */
  readonly #waiting = new Map<() => void, number>();

  constructor(sockets: Network, deliver: (event: () => void) => void, host: MemberNetworkHost) {
    this.#sockets = sockets;
    this.#deliver = deliver;
    this.#host = host;
  }

  listen(at: Endpoint, events: ListenEvents): { close(): void } {
    return this.#sockets.listen(at, {
      onListening: () => events.onListening(),
      onListenFailed: (reason) => {
        this.#host.onListenFailed(at.port, reason);
        events.onListenFailed(reason);
      },
      onAccepted: (stream) => events.onAccepted(stream),
    });
  }

  /** Behind a cut nobody answers and nobody refuses: the attempt lasts until it is given up or the cut ends. */
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

  onCutsChanged(): void {
    for (const [link, port] of this.#links) {
      if (this.#host.isCutFrom(port)) link.cut();
      else link.heal();
    }
    for (const [dial, port] of this.#waiting) {
      if (this.#host.isCutFrom(port)) continue;
      this.#deliver(() => {
        // It may have been given up, or cut again, while the server was paused.
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
