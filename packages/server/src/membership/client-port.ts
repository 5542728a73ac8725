import type { TraceEvent } from '@meerkat/core';
import type { HostPort, Member } from '@meerkat/protocol';

/** Where clients connect; null as host: every address of the machine. */
export interface ClientAddress {
  readonly host: string | null;
  readonly port: number;
}

const ANY_HOST = '0.0.0.0';

/** Follows what the memberships say about the client port of this server, once they are in force. */
export class ClientPortWatch {
  readonly #serverId: number;
  readonly #onMoved: (address: ClientAddress) => void;
  #address: ClientAddress | null;

  /** @param address as the configuration says; null: there is no such port */
  constructor(serverId: number, address: ClientAddress | null, onMoved: (address: ClientAddress) => void) {
    this.#serverId = serverId;
    this.#address = address;
    this.#onMoved = onMoved;
  }

  emit(event: TraceEvent): void {
    if (event.kind !== 'membership-changed') return;
    const client = event.committed.members.find(isServer(this.#serverId))?.client ?? null;
    if (client === null || this.#isAt(client)) return;
    this.#address = { host: client.host === ANY_HOST ? null : client.host, port: client.port };
    this.#onMoved(this.#address);
  }

  /** A list that names no address says nothing against the one that the configuration names. */
  #isAt({ host, port }: HostPort): boolean {
    return this.#address?.port === port && (host === ANY_HOST || host === this.#address.host);
  }
}

function isServer(id: number): (member: Member) => boolean {
  return ({ serverId }) => serverId === id;
}
