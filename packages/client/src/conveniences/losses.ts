import { ZooKeeperError } from '../errors.ts';

/** How often conveniences try again what a lost connection ended, and what somebody else undid. */
export const ATTEMPTS_MAX = 10;

/**
 * The connection to the server was lost on the way, not the session, and not the caller's patience: on the next
 * connection the truth can be found out.
 */
export function isLoss(error: unknown): error is ZooKeeperError {
  return error instanceof ZooKeeperError && LOSSES.has(error.code);
}

/** A loss after which the request may have been carried out. */
export function isDoubtfulLoss(error: unknown): error is ZooKeeperError {
  return isLoss(error) && error.outcome === 'unknown';
}

const LOSSES: ReadonlySet<string> = new Set(['CONNECTIONLOSS', 'SESSIONMOVED', 'OPERATIONTIMEOUT', 'REQUESTTIMEOUT']);
