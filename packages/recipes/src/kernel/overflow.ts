/**
 * The counter from which sequential znodes get their numbers belongs to the parent and never goes back. At 2^31 − 1 an
 * Apache server stops: it gives that number again and again, so that the order of those who wait is lost. A Meerkat server
 * continues to 2^32 − 1 and from there to 0, which the order of this package survives, and that of other libraries does not.
 *
 * The counter starts again with the parent, so a line that is empty is moved on by deleting its parent: the server refuses
 * that as long as any client stands in it.
 */

/** The last number that every server gives once. */
export const SEQUENCE_MAX: number = 2 ** 31 - 1;

/** From here on it is reported, and the parent is recreated where that is possible: 80 % of the way. */
export const SEQUENCE_HIGH: number = Math.ceil(0.8 * SEQUENCE_MAX);

/** What follows from it for those whom the numbers put in order, and what to do. */
const NO_ORDER =
  'so that the order of those who wait is lost. Delete the znode while no client uses it, and it starts again at 0; or use ' +
  'another path';

/**
 * The server has given a number before, and gives it again and again. Nothing is held, no client stands in a line for us, and
 * nothing was put.
 */
export class SequenceExhaustedError extends Error {
  override readonly name = 'SequenceExhaustedError';
  /** The parent of the sequential znodes. */
  readonly path: string;

  /** @param consequence why that is bad here, and what to do: "so that …" */
  constructor(path: string, consequence: string = NO_ORDER) {
    super(
      `${path}: the server has used up the sequence numbers of this znode (2147483647 is given twice), ${consequence}. ` +
        'Meerkat servers continue counting.',
    );
    this.path = path;
  }
}

/** What becomes of a parent whose numbers run out. */
export const Remedy = {
  itself: 'The znode will be recreated as soon as the line is empty',
  byHand: 'Make the znode again while no client uses it, or use another path',
  elsewhere: 'Use another path before they end: recreated, the znode would give the same numbers again',
} as const;
export type Remedy = (typeof Remedy)[keyof typeof Remedy];

/** Reports once a process for each path that its numbers are running out. */
export function warnIfHigh(path: string, sequence: number, remedy: Remedy): void {
  if (sequence < SEQUENCE_HIGH || warned.has(path)) return;
  warned.add(path);
  const percent = Math.floor((100 * sequence) / SEQUENCE_MAX);
  process.emitWarning(
    `${path} has given ${sequence} sequence numbers, ${percent} % of those that an Apache server has. ${remedy}.`,
    { type: 'SequenceWarning', code: 'MEERKAT_SEQUENCE' },
  );
}

const warned = new Set<string>();
