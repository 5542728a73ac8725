import type { HostPort, Random } from './ports.ts';

/**
 * The servers to try, in a random but fixed order, so that many clients spread over an ensemble and one client visits
 * every server before it returns to the first (StaticHostProvider).
 */
export class Hosts {
  readonly #hosts: HostPort[];
  #next = 0;
  /** Attempts since the last success, in rounds, possibly with a fraction. */
  #tried = 0;

  /** @param hosts at least one */
  constructor(hosts: readonly HostPort[], random: Random) {
    this.#hosts = shuffle(hosts, random);
  }

  get count(): number {
    return this.#hosts.length;
  }

  /** Rounds without a success: 0 until every host was tried once. */
  get rounds(): number {
    return Math.floor(this.#tried / this.#hosts.length);
  }

  /** True when the next host begins a round after the first. */
  get isRoundOver(): boolean {
    return this.#tried > 0 && this.#tried % this.#hosts.length === 0;
  }

  next(): HostPort {
    const host = this.#hosts[this.#next]!;
    this.#next = (this.#next + 1) % this.#hosts.length;
    this.#tried++;
    return host;
  }

  onConnected(): void {
    this.#tried = 0;
  }

  /** Makes this host the next; one that is not in the list is added. */
  prefer(host: HostPort): void {
    let index = this.#hosts.findIndex((other) => other.host === host.host && other.port === host.port);
    if (index < 0) index = this.#hosts.push({ host: host.host, port: host.port }) - 1;
    this.#next = index;
    this.#tried = 0;
  }
}

/** A copy in random order (Fisher and Yates). */
export function shuffle<T>(items: readonly T[], random: Random): T[] {
  const shuffled = [...items];
  for (let i = shuffled.length - 1; i > 0; i--) {
    const j = random.uint32() % (i + 1);
    [shuffled[i], shuffled[j]] = [shuffled[j]!, shuffled[i]!];
  }
  return shuffled;
}
