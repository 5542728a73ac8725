import { CuttableNetwork, type StartOptions } from '@meerkat/server';

type Decorator = NonNullable<StartOptions['decorateNetwork']>;

/** The network between the servers of an ensemble in this process: sockets of the loopback interface, with cuts. */
export class EnsembleNetwork {
  /** Server ids by the ports of theirs. */
  readonly #owners: ReadonlyMap<number, number>;
  /** The network of each server in its present life, by server id. */
  readonly #members = new Map<number, CuttableNetwork>();
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

  /** What makes this network a server's. Each of its lives asks again. */
  decoratorOf(serverId: number): Decorator {
    return (sockets, deliver) => {
      const member = new CuttableNetwork(sockets, deliver, {
        isCutFrom: (port) => this.isCut(serverId, this.#owners.get(port) ?? serverId),
        onListenFailed: (port, reason) => {
          // The code of the system comes first.
          if (reason.startsWith('EADDRINUSE')) this.#takenPort ??= new TakenPortError(port);
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

/** Another program was quicker. The code is Node's, so that a caller that asks for taken ports finds it. */
export class TakenPortError extends Error {
  readonly code = 'EADDRINUSE';

  constructor(port: number) {
    super(`cannot listen for other servers on 127.0.0.1:${port}: it is in use`);
    this.name = 'TakenPortError';
  }
}
