import { AbortedError, type About, AuthFailedError, ClosedError, TimeoutError, ZooKeeperError } from '@meerkat/client';

/**
 * What ends a call that may have had its effect already: the same error, of outcome 'unknown'. The reads that such a call
 * goes on with have changed nothing, and say so of themselves.
 */
export function asDoubtful(error: unknown, about: About): unknown {
  if (!(error instanceof ZooKeeperError) || error.outcome === 'unknown') return error;
  const type = ENDS.find((each) => error instanceof each);
  if (type === undefined) return error;
  return new type({ ...about, server: error.server, outcome: 'unknown', cause: error.cause ?? error });
}

/** Of the caller's patience, and of the client. */
const ENDS = [AbortedError, TimeoutError, ClosedError, AuthFailedError] as const;
