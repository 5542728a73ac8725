import { type ElectionNotification, ServerState } from '@meerkat/protocol';

const NEVER = Number.POSITIVE_INFINITY;
/** Milliseconds of silence after which another address of the peer is tried, and after each such attempt the next one. */
const SILENT_MS = 2000;

/** Since when a peer owes an answer: it was asked for its vote over its link, and has said nothing since. */
export class OpenQuestion {
  #askedMs = NEVER;
  /** The round in which it was asked; 0 when it was not, over this link. */
  #round = 0;
  /** Addresses that have been tried because of its silence, and when the last was; NEVER when none was. */
  #tries = 0;
  #triedMs = NEVER;

  /** Milliseconds of the monotonic clock; Infinity when it owes no answer. */
  get askedMs(): number {
    return this.#askedMs;
  }

  /** When its silence has lasted too long, over its link and over the address that was tried last; Infinity for never. */
  get overdueMs(): number {
    return (this.#triedMs === NEVER ? this.#askedMs : this.#triedMs) + SILENT_MS;
  }

  /**
   * Another address is tried. The question stays open: an attempt may fail, and nobody else would make the next one.
   *
   * @returns how many have been tried, this one included
   */
  onTried(nowMs: number): number {
    this.#triedMs = nowMs;
    return ++this.#tries;
  }

  /** Who looks for a leader hears from everybody, once in a round at least. Who has one need not. */
  onSent({ state, electionEpoch }: ElectionNotification, nowMs: number): void {
    if (state !== ServerState.looking) {
      this.onAnswered();
    } else if (electionEpoch !== this.#round) {
      this.#round = electionEpoch;
      if (this.#askedMs === NEVER) this.#askedMs = nowMs;
    }
  }

  /** It has said something, or is not waited for any longer. */
  onAnswered(): void {
    this.#askedMs = NEVER;
    this.#triedMs = NEVER;
    this.#tries = 0;
  }

  /** Another link has taken the place of the one over which it was asked. */
  onLinked(): void {
    this.onAnswered();
    this.#round = 0;
  }
}
