/**
 * Messages for a log that stops the start: where, what is known, and what to do. They claim no more than is known, and
 * never advise a cut that would remove whole txns.
 */
import { hexZxid, type Zxid } from '@meerkat/protocol';
import type { IntactTxns } from './intact-txns.ts';

export interface FilePosition {
  readonly path: string;
  readonly position: number;
}

export interface LogDamage {
  /** null: only that the log ends here. */
  readonly reason: string | null;
  /** After the position, in the same file. */
  readonly intact: IntactTxns | null;
  /** The last txn before the position. */
  readonly last: Zxid;
  /** The lower bound of what this server has acknowledged; ZXID_NONE: unknown. */
  readonly durable: Zxid;
  readonly isLastFile: boolean;
}

const RESTORE = 'Restore the directory from a backup or copy it from a healthy server';
/** The file of `durable-mark.ts`. */
const FORGET = 'remove the file durableZxid, beside acceptedEpoch';
const READ_ON = 'docs/storage.md, "When a start is refused", describes the remaining options';

export function describeDamage(place: FilePosition, { reason, intact, last, durable, isLastFile }: LogDamage): string {
  const isMissing = durable > last;
  if (reason === null) {
    return (
      `${place.path} at position ${place.position}: the log ends here, with zxid ${hexZxid(last)}, and this server had ` +
      `acknowledged everything up to ${hexZxid(durable)}. ${EARLY_END}`
    );
  }
  const parts = [`${place.path} at position ${place.position}: ${reason}.`];
  if (isMissing) {
    parts.push(
      `The log before ends with zxid ${hexZxid(last)}, and this server had acknowledged everything up to ${hexZxid(durable)}.`,
    );
  }
  if (intact !== null) {
    const { count, firstZxid, lastZxid, firstAt } = intact;
    const range =
      count === 1
        ? `1 txn is whole, zxid ${hexZxid(firstZxid)},`
        : `${count} txns are whole, ${hexZxid(firstZxid)} to ${hexZxid(lastZxid)},`;
    parts.push(`Behind it ${range} from position ${place.position + firstAt} on.`);
  }
  parts.push(`Acknowledged txns ${isMissing ? 'are' : 'may be'} damaged or missing, so this server does not start.`);
  const isNothingElse = intact === null && isLastFile;
  const cut = `truncate -s ${place.position} ${place.path}`;
  const toContinue = `to continue without these bytes, keep a copy and run: ${cut}${isMissing ? `; ${FORGET}` : ''}`;
  parts.push(`${RESTORE}; ${isNothingElse ? toContinue : READ_ON}`);
  return parts.join(' ');
}

const EARLY_END =
  'So acknowledged txns are missing, and this server does not start: log files were cut, removed or restored, the ' +
  'directory is another one, or a copy made while the server was running. Put back what is missing, or restore the ' +
  `directory from a backup or copy it from a healthy server; if the log is as it should be, ${FORGET}`;

/** @param torn what is known about a damaged end of the previous file; null: nothing */
export function describeMissing(place: FilePosition, reason: string, torn: string | null): string {
  const damage = torn === null ? '' : ` The previous file is damaged: ${torn}.`;
  return (
    `${place.path} at position ${place.position}: ${reason}.${damage} Acknowledged txns may be missing, so this server does ` +
    'not start. Restore the file that is missing or damaged from a backup, or copy the directory from a healthy server; ' +
    READ_ON
  );
}

/** The log ends normally, but too early. */
export function describeLost(directory: string, last: Zxid, durable: Zxid): string {
  return (
    `the log in ${directory} ends with zxid ${hexZxid(last)}, and this server had acknowledged everything up to ${hexZxid(durable)}. ` +
    EARLY_END
  );
}
