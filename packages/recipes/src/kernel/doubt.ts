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
 * What ends a call that may have had its effect already: the same error, of outcome 'unknown'. The reads and repetitions that
 * such a call continues with have changed nothing, and say so of themselves.
 */
export function asDoubtful(error: unknown, about: About): unknown {
  return withOutcome(error, 'unknown', about, [...ENDS, ...REFUSALS]);
}

/** What ends a call that has only waited: the same error, of outcome 'not-applied'. */
export function asHarmless(error: unknown, about: About): unknown {
  return withOutcome(error, 'not-applied', about, ENDS);
}

/**
 * What ends a call of which a write is in doubt: the limit of the caller or the client if it was that, and otherwise what has left
 * the doubt.
 *
 * @param loss how the reply got lost; undefined when nothing is in doubt
 */
export function withDoubt(error: unknown, loss: ZooKeeperError | undefined, about: About): unknown {
  if (loss === undefined) return error;
  const told = asDoubtful(error, about);
  return told instanceof ZooKeeperError && told.outcome === 'unknown' ? told : loss;
}

/** Whether one of the attempts that a call makes may have been carried out although its answer was lost. */
export class Uncertainty {
  #exists = false;

  get exists(): boolean {
    return this.#exists;
  }

  /** Remembers what ended an attempt. @returns it, to be thrown on */
  noted(error: unknown): unknown {
    this.#exists ||= error instanceof ZooKeeperError && error.outcome === 'unknown';
    return error;
  }

  /** The error for the caller, who knows of all attempts only what this says. */
  told(error: unknown, about: About): unknown {
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

/** Of the limit of the caller, and of the client. */
const ENDS: readonly PlainErrorType[] = [AbortedError, TimeoutError, ClosedError, AuthFailedError];

/** What the service says of a repetition, which reports nothing of the attempt before it. */
const REFUSALS: readonly PlainErrorType[] = [
  NoNodeError,
  NoAuthError,
  NotReadOnlyError,
  QuotaExceededError,
  RequestTooLargeError,
];
