import {
  AbortedError,
  type About,
  AuthFailedError,
  ClosedError,
  NoAuthError,
  NoNodeError,
  NotReadOnlyError,
  type Outcome,
  QuotaExceededError,
  RequestTooLargeError,
  TimeoutError,
  ZooKeeperError,
} from '@meerkat/client';

/**
 * The error of a call that may have had its effect already: the same error, with outcome 'unknown'. The error may be
 * that of a later read or retry, whose own outcome is 'not-applied'.
 */
export function asDoubtful(error: unknown, about: About): unknown {
  return withOutcome(error, 'unknown', about, [...ENDS, ...REFUSALS]);
}

/** The error of a call that has only waited: the same error, with outcome 'not-applied'. */
export function asNotApplied(error: unknown, about: About): unknown {
  return withOutcome(error, 'not-applied', about, ENDS);
}

/**
 * The error of a call with a write in doubt: the caller's limit or the end of the client if it was that, otherwise the
 * loss that caused the doubt.
 *
 * @param loss how the reply was lost; undefined when nothing is in doubt
 */
export function withDoubt(error: unknown, loss: ZooKeeperError | undefined, about: About): unknown {
  if (loss === undefined) return error;
  const doubtful = asDoubtful(error, about);
  return doubtful instanceof ZooKeeperError && doubtful.outcome === 'unknown' ? doubtful : loss;
}

/** Whether one of the attempts of a call may have been applied although its reply was lost. */
export class Uncertainty {
  #exists = false;

  get exists(): boolean {
    return this.#exists;
  }

  /** Records what ended an attempt. @returns it, to be rethrown */
  noted(error: unknown): unknown {
    this.#exists ||= error instanceof ZooKeeperError && error.outcome === 'unknown';
    return error;
  }

  /** The error for the caller, who learns the outcome of all attempts from it. */
  toCallerError(error: unknown, about: About): unknown {
    return this.#exists ? asDoubtful(error, about) : error;
  }
}

function withOutcome(error: unknown, outcome: Outcome, about: About, types: readonly PlainErrorType[]): unknown {
  if (!(error instanceof ZooKeeperError) || error.outcome === outcome) return error;
  const type = types.find((each) => error instanceof each);
  if (type === undefined) return error;
  return new type({ ...about, server: error.server, outcome, cause: error.cause ?? error });
}

type PlainErrorType = new (...details: ConstructorParameters<typeof ZooKeeperError>) => ZooKeeperError;

/** Errors of the caller's limit, and of the client. */
const ENDS: readonly PlainErrorType[] = [AbortedError, TimeoutError, ClosedError, AuthFailedError];

/** Refusals of a retry, which say nothing about the attempt before it. */
const REFUSALS: readonly PlainErrorType[] = [
  NoNodeError,
  NoAuthError,
  NotReadOnlyError,
  QuotaExceededError,
  RequestTooLargeError,
];
