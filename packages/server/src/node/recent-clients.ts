/**
 * Whether more than one client has sent something lately.
 *
 * A sync on the loop keeps the loop for as long as the disk takes, and a disk that was quick may take a tenth of a second once,
 * while another program writes much. The client whose write is synced waits in either case; a second one would wait for nothing.
 */
export class RecentClients {
  #last: object | null = null;
  #severalUntilMs = Number.NEGATIVE_INFINITY;

  /** @param client compared by identity */
  touch(client: object): void {
    if (client === this.#last) return;
    // The first one of all is alone.
    if (this.#last !== null) this.#severalUntilMs = performance.now() + LATELY_MS;
    this.#last = client;
  }

  get areSeveral(): boolean {
    return performance.now() < this.#severalUntilMs;
  }
}

const LATELY_MS = 100;
