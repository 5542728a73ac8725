import { ERRORS } from '../error-table.ts';
import { ZooKeeperError } from '../zookeeper-error.ts';

/** How often conveniences retry after a lost connection, and after a concurrent change. */
export const ATTEMPTS_MAX = 10;

/**
 * The reply was lost: the connection broke, or the service stopped waiting. With a connection the outcome can be found
 * out at once. Not so when the service is overloaded, the session is over, or the caller has cancelled.
 */
export function isLoss(error: unknown): error is ZooKeeperError {
  if (!(error instanceof ZooKeeperError)) return false;
  const { retryClass, outcome } = ERRORS[error.code];
  return retryClass === 'connection' || (retryClass === 'pause' && outcome === 'unknown');
}

/** A loss after which the request may have been applied. */
export function isDoubtfulLoss(error: unknown): error is ZooKeeperError {
  return isLoss(error) && error.outcome === 'unknown';
}
