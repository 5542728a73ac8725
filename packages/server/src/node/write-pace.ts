/** Whose long output waits. */
export interface PacedWriter {
  /** Hands at most `PIECE_BYTES` to the kernel. A writer with more to write waits again. @returns how many bytes */
  writePiece(): number;
}

/**
 * How much of long output all streams together hand to the kernel in a turn. A reply of 10 MB costs its write some
 * milliseconds, most of all where the peer is on this machine; a hundred peers that take theirs at the same moment would keep
 * everybody else waiting for a hundred times as long.
 *
 * The streams take turns, piece by piece: the one that has waited longest comes first.
 */
export class WritePace {
  readonly #bytesPerTurn: number;
  #waiting: PacedWriter[] = [];

  constructor(bytesPerTurn: number = BYTES_PER_TURN) {
    this.#bytesPerTurn = bytesPerTurn;
  }

  /** It has something to write, and nothing of it is on its way to the kernel. Once, until `writePiece` is called. */
  wait(writer: PacedWriter): void {
    this.#waiting.push(writer);
  }

  /** A turn ends. @returns true when some still wait, for the next one */
  onTurnEnd(): boolean {
    if (this.#waiting.length === 0) return false;
    let left = this.#bytesPerTurn;
    let at = 0;
    for (; at < this.#waiting.length && left > 0; at++) left -= this.#waiting[at]!.writePiece();
    this.#waiting.splice(0, at);
    return this.#waiting.length > 0;
  }
}

/**
 * Twice as much as is read for replies in a turn, so that nothing piles up here while clients take what they are sent. What
 * waits counts as not taken, and too much of that disconnects.
 */
const BYTES_PER_TURN = 2 * 1024 * 1024;
/** What a stream writes in a turn without waiting: more than a reply without multiRead and lists needs. */
export const AT_ONCE_BYTES_MAX: number = 1024 * 1024;
/** What a stream writes at once of longer output. */
export const PIECE_BYTES: number = 128 * 1024;
