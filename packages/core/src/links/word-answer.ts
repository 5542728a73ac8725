/** The connection that sent the word. */
interface AskingConnection {
  /** True when it has used up its share of the turn, or there is no room for more output. */
  readonly mustWait: boolean;
  readonly output: { text(text: string): void };
  charge(units: number): void;
}

/** The answer to a four-letter word, produced line by line: it may have a line for each of many connections. */
export class WordAnswer {
  readonly #lines: Iterator<string>;
  #isDone = false;
  /** Units of work that the last piece cost. */
  #units = 0;

  constructor(lines: Iterable<string>) {
    this.#lines = lines[Symbol.iterator]();
  }

  /**
   * Writes as much as the connection's share of this turn and the room for output allow.
   *
   * @returns true when that was the last of it
   */
  sendTo(connection: AskingConnection): boolean {
    while (!connection.mustWait && !this.#isDone) {
      const piece = this.#next();
      if (piece !== '') connection.output.text(piece);
      connection.charge(this.#units);
    }
    return this.#isDone;
  }

  #next(): string {
    let piece = '';
    let lineUnits = 0;
    while (piece.length < PIECE_LENGTH) {
      const line = this.#lines.next();
      if (line.done === true) {
        this.#isDone = true;
        break;
      }
      piece += line.value;
      lineUnits += LINE_UNITS;
    }
    this.#units = lineUnits + (piece.length >> TEXT_PER_UNIT_SHIFT);
    return piece;
  }
}

/** Cost of a line in units of the work meter; its text costs one unit per 16 characters. */
const LINE_UNITS = 16;
const TEXT_PER_UNIT_SHIFT = 4;
/** Characters written at a time. */
const PIECE_LENGTH = 4096;
