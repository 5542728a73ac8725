import { NoNodeError, type TransactionError } from '@meerkat/client';

/** The znode that opens a double barrier, beside those of its members. */
export const READY = 'ready';

/** What was to be deleted is not there. */
export function ignoreMissing(error: unknown): void {
  if (!(error instanceof NoNodeError)) throw error;
}

/** The names of the members, the lowest first. */
export function membersOf(children: readonly string[]): string[] {
  return children.filter((name) => name !== READY).sort();
}

/** Somebody else has changed what the transaction relied on, or an earlier attempt of it was applied. */
export function isRace({ cause }: TransactionError): boolean {
  return RACES.has(cause.code);
}

const RACES: ReadonlySet<string> = new Set(['NONODE', 'NODEEXISTS', 'BADVERSION']);
