import { type ElectionNotification, ServerState } from '@meerkat/protocol';

const NEVER = Number.POSITIVE_INFINITY;

/** Since when a peer owes an answer: it was asked for its vote over its link, and has said nothing since. */
export class OpenQuestion {
  #askedMs = NEVER;
  /** The round in which it was asked; 0 when it was not, over this link. */
  #round = 0;

  /** Milliseconds of the monotonic clock; Infinity when it owes no answer. */
  get askedMs(): number {
    return this.#askedMs;
  }

  /** Who looks for a leader hears from everybody, once in a round at least. Who has one need not. */
  onSent({ state, electionEpoch }: ElectionNotification, nowMs: number): void {
    if (state !== ServerState.looking) {
      this.#askedMs = NEVER;
    } else if (electionEpoch !== this.#round) {
      this.#round = electionEpoch;
      this.#askedMs = nowMs;
    }
  }

  /** It has said something, or is not waited for any longer. */
  onAnswered(): void {
    this.#askedMs = NEVER;
  }

  /** Another link has taken the place of the one over which it was asked. */
  onLinked(): void {
    this.#askedMs = NEVER;
    this.#round = 0;
  }
}
