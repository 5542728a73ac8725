import { NodeExistsError, NoNodeError, retryClassOf, type ZooKeeperError } from '@meerkat/client';

/** The connection was lost on the way, or the session, or the service is busy: with time the truth can be found out. */
export function isPassing(error: unknown): error is ZooKeeperError {
  return isLoss(error) || isSessionEnd(error);
}

/** The same, but for the session. */
export function isLoss(error: unknown): error is ZooKeeperError {
  const retryClass = retryClassOf(error);
  return retryClass === 'connection' || retryClass === 'pause';
}

/** The session is over, or was given up for lost. */
export function isSessionEnd(error: unknown): error is ZooKeeperError {
  return retryClassOf(error) === 'session';
}

/** What was to be deleted is not there. */
export function ignoreMissing(error: unknown): void {
  if (!(error instanceof NoNodeError)) throw error;
}

/** What was to be read is not there. */
export function nullIfMissing(error: unknown): null {
  ignoreMissing(error);
  return null;
}

/** What was to be made is there. */
export function ignoreExisting(error: unknown): void {
  if (!(error instanceof NodeExistsError)) throw error;
}
