import { NodeExistsError, NoNodeError, retryClassOf, type ZooKeeperError } from '@meerkat/client';

/** Lost connection, lost session, or busy service: the outcome can be found out later. */
export function isPassing(error: unknown): error is ZooKeeperError {
  return isLoss(error) || isSessionEnd(error);
}

/** The same, without session loss. */
export function isLoss(error: unknown): error is ZooKeeperError {
  const retryClass = retryClassOf(error);
  return retryClass === 'connection' || retryClass === 'pause';
}

/** The session is over, or considered lost. */
export function isSessionEnd(error: unknown): error is ZooKeeperError {
  return retryClassOf(error) === 'session';
}

/** The znode to be deleted does not exist. */
export function ignoreMissing(error: unknown): void {
  if (!(error instanceof NoNodeError)) throw error;
}

/** The znode to be read does not exist. */
export function nullIfMissing(error: unknown): null {
  ignoreMissing(error);
  return null;
}

/** The znode to be created exists. */
export function ignoreExisting(error: unknown): void {
  if (!(error instanceof NodeExistsError)) throw error;
}
