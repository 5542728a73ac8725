/** The answer to a four-letter word, line by line as it is asked for: there may be one for each of many connections. */
export class WordAnswer {
  readonly #lines: Iterator<string>;
  #isDone = false;
  /** Units of work that the last piece has cost. */
  #units = 0;

  constructor(lines: Iterable<string>) {
    this.#lines = lines[Symbol.iterator]();
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  get units(): number {
    return this.#units;
  }

  /** The next lines; `isDone` and `units` tell of it. */
  next(): string {
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

/** What a line costs, in units of the work meter, and its text: a unit for 16 characters. */
const LINE_UNITS = 16;
const TEXT_PER_UNIT_SHIFT = 4;
/** Characters that are put into the output together. */
const PIECE_LENGTH = 4096;
