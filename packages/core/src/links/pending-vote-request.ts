import { type ElectionNotification, ServerState } from '@meerkat/protocol';

const NEVER = Number.POSITIVE_INFINITY;
/** Milliseconds of silence after which another address of the peer is tried, and after each such attempt the next. */
const SILENT_MS = 2000;

/** Tracks since when a peer owes an answer: it was asked for its vote over its link, and has been silent since. */
export class PendingVoteRequest {
  #askedMs = NEVER;
  /** Round in which it was last asked over this link; 0 if it was not. */
  #round = 0;
  /** Addresses tried because of its silence; below, when the last was tried, or NEVER. */
  #tries = 0;
  #triedMs = NEVER;

  /** Milliseconds of the monotonic clock; Infinity when it owes no answer. */
  get askedMs(): number {
    return this.#askedMs;
  }

  /** When its silence has lasted too long, counted from the question or the last address tried; Infinity for never. */
  get overdueMs(): number {
    return (this.#triedMs === NEVER ? this.#askedMs : this.#triedMs) + SILENT_MS;
  }

  /**
   * Another address is tried. The question stays open: the attempt may fail, and then this timer must trigger the next
   * one.
   *
   * @returns how many addresses have been tried, including this one
   */
  onTried(nowMs: number): number {
    this.#triedMs = nowMs;
    return ++this.#tries;
  }

  /** A looking server expects an answer from every peer at least once per round. A server with a leader does not. */
  onSent({ state, electionEpoch }: ElectionNotification, nowMs: number): void {
    if (state !== ServerState.looking) {
      this.onAnswered();
    } else if (electionEpoch !== this.#round) {
      this.#round = electionEpoch;
      if (this.#askedMs === NEVER) this.#askedMs = nowMs;
    }
  }

  /** It has answered, or an answer is no longer expected. */
  onAnswered(): void {
    this.#askedMs = NEVER;
    this.#triedMs = NEVER;
    this.#tries = 0;
  }

  /** The link over which it was asked has been replaced. */
  onLinked(): void {
    this.onAnswered();
    this.#round = 0;
  }
}
