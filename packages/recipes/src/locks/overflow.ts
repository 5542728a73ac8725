/**
 * The counter from which sequential znodes get their numbers belongs to the parent and never goes back. At 2^31 − 1 an
 * Apache server stops: it gives that number again and again, so that the order of those who wait is lost. A Meerkat server
 * goes on to 2^32 − 1 and from there to 0, which the order of this package survives, and that of other libraries does not.
 *
 * The counter starts anew with the parent, so a line that is empty is moved on by deleting its parent: the server refuses
 * that as long as anybody stands in it.
 */

/** The last number that every server gives once. */
export const SEQUENCE_MAX: number = 2 ** 31 - 1;

/** From here on it is told, and the parent is made anew where that is possible: 80 % of the way. */
export const SEQUENCE_HIGH: number = Math.floor(0.8 * SEQUENCE_MAX);

/**
 * The server has given our number before: it cannot tell any more who came first. Nothing is held, and nobody stands in
 * the line for us.
 */
export class SequenceExhaustedError extends Error {
  override readonly name = 'SequenceExhaustedError';
  /** The parent of the sequential znodes. */
  readonly path: string;

  constructor(path: string) {
    super(
      `${path}: the server has used up the sequence numbers of this znode (2147483647 was given twice), so that the order ` +
        'of those who wait is lost. Delete the znode while nobody uses it, and it starts anew at 0; or use another path. ' +
        'Meerkat servers go on counting.',
    );
    this.path = path;
  }
}

/** Tells once a process for each path that its numbers are running out. */
export function warnIfHigh(path: string, sequence: number, canMove: boolean): void {
  if (sequence < SEQUENCE_HIGH || warned.has(path)) return;
  warned.add(path);
  const percent = Math.floor((100 * sequence) / SEQUENCE_MAX);
  const what = canMove
    ? 'The znode will be made anew as soon as nobody stands in line'
    : 'Make the znode anew while nobody uses it, or use another path';
  process.emitWarning(
    `${path} has given ${sequence} sequence numbers, ${percent} % of those that an Apache server has. ${what}.`,
    { type: 'SequenceWarning', code: 'MEERKAT_SEQUENCE' },
  );
}

const warned = new Set<string>();
