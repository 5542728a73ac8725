import {
  AbortedError,
  type About,
  AuthFailedError,
  ClosedError,
  type Outcome,
  TimeoutError,
  ZooKeeperError,
} from '@meerkat/client';

/**
 * What ends a call that may have had its effect already: the same error, of outcome 'unknown'. The reads that such a call
 * goes on with have changed nothing, and say so of themselves.
 */
export function asDoubtful(error: unknown, about: About): unknown {
  return withOutcome(error, 'unknown', about);
}

/** What ends a call that has only waited: the same error, of outcome 'not-applied'. */
export function asHarmless(error: unknown, about: About): unknown {
  return withOutcome(error, 'not-applied', about);
}

function withOutcome(error: unknown, outcome: Outcome, about: About): unknown {
  if (!(error instanceof ZooKeeperError) || error.outcome === outcome) return error;
  const type = ENDS.find((each) => error instanceof each);
  if (type === undefined) return error;
  return new type({ ...about, server: error.server, outcome, cause: error.cause ?? error });
}

/** Of the caller's patience, and of the client. */
const ENDS = [AbortedError, TimeoutError, ClosedError, AuthFailedError] as const;
