import type { Endpoint } from '../base/ports.ts';

/**
 * The addresses of another server, in the order in which they are tried: what it has announced comes before what the
 * configuration says, and of each the one that answered last comes first.
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

  /** The configuration says something else now. What was announced before may be out of date. */
  configure(addresses: readonly Endpoint[]): void {
    this.#configured = addresses;
    this.#announced = [];
    this.#arrange();
  }

  /** Where the server says that it is. */
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

/** Who listens on every address of a machine can do so once on a port. */
export function onePerPort(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  return endpoints.filter(({ port }, i) => endpoints.findIndex((other) => other.port === port) === i);
}
