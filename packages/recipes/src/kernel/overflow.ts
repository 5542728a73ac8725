/**
 * The counter for sequential znodes belongs to the parent and never decreases. At 2^31 − 1 an Apache server stops: it
 * returns that number repeatedly, so that the order of the contenders is lost. A Meerkat server continues to 2^32 − 1
 * and then at 0; this package handles that, other libraries do not.
 *
 * The counter starts again with the parent, so an empty line is reset by deleting its parent: the server refuses that
 * as long as the line has a contender.
 */

/** The last number that every server returns only once. */
export const SEQUENCE_MAX: number = 2 ** 31 - 1;

/** From here on there is a warning, and the parent is recreated where possible: at 80 %. */
export const SEQUENCE_HIGH: number = Math.ceil(0.8 * SEQUENCE_MAX);

/** The consequence for contenders ordered by number, and the remedy. */
const NO_ORDER =
  'so that the order of those who wait is lost. Delete the znode while no client uses it, and it starts again at 0; or use ' +
  'another path';

/**
 * The server has returned a number before, and returns it repeatedly. Nothing is held, no place in a line was taken,
 * and nothing was put.
 */
export class SequenceExhaustedError extends Error {
  override readonly name = 'SequenceExhaustedError';
  /** The parent of the sequential znodes. */
  readonly path: string;

  /** @param consequence why that matters here, and the remedy: "so that …" */
  constructor(path: string, consequence: string = NO_ORDER) {
    super(
      `${path}: the server has used up the sequence numbers of this znode (2147483647 is given twice), ${consequence}. ` +
        'Meerkat servers continue counting.',
    );
    this.path = path;
  }
}

/** How a parent is handled whose numbers run out. */
export const Remedy = {
  itself: 'The znode will be recreated as soon as the line is empty',
  byHand: 'Make the znode again while no client uses it, or use another path',
  elsewhere: 'Use another path before they end: recreated, the znode would give the same numbers again',
} as const;
export type Remedy = (typeof Remedy)[keyof typeof Remedy];

/** Warns once per process and path that its numbers are running out. */
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
