import type { Endpoint } from '../base/ports.ts';

/**
 * The addresses of another server, in the order in which they are tried: announced addresses before configured ones,
 * and within each group starting with the one that answered last.
 */
export class AddressList {
  #configured: readonly Endpoint[];
  #announced: readonly Endpoint[] = [];
  #answered: Endpoint | null = null;
  #all: readonly Endpoint[];

  constructor(configured: readonly Endpoint[]) {
    this.#configured = configured;
    this.#all = configured;
  }

  get all(): readonly Endpoint[] {
    return this.#all;
  }

  /** The address of the n-th attempt in a row, from 0; null when there is none. */
  at(attempt: number): Endpoint | null {
    return this.#all[attempt % Math.max(this.#all.length, 1)] ?? null;
  }

  /** The configuration has changed. Addresses announced earlier may be out of date. */
  configure(addresses: readonly Endpoint[]): void {
    this.#configured = addresses;
    this.#announced = [];
    this.#arrange();
  }

  /** Addresses that the server has announced for itself. */
  announce(addresses: readonly Endpoint[]): void {
    this.#announced = addresses;
    this.#arrange();
  }

  onAnswered(address: Endpoint): void {
    this.#answered = address;
    this.#arrange();
  }

  #arrange(): void {
    const all: Endpoint[] = [];
    for (const group of [this.#announced, this.#configured]) {
      const first = Math.max(
        0,
        group.findIndex((address) => isSameEndpoint(address, this.#answered)),
      );
      for (const address of [...group.slice(first), ...group.slice(0, first)]) {
        if (!all.some((known) => isSameEndpoint(known, address))) all.push(address);
      }
    }
    this.#all = all;
  }
}

export function isSameEndpoint(a: Endpoint | null, b: Endpoint | null): boolean {
  return a?.host === b?.host && a?.port === b?.port;
}

/** A process that listens on all interfaces can listen on a port only once. */
export function onePerPort(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  return endpoints.filter(({ port }, i) => endpoints.findIndex((other) => other.port === port) === i);
}
