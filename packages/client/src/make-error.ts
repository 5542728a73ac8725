import { ERRORS, type RetryClass, type ZooKeeperCode } from './error-table.ts';
import {
  AbortedError,
  AuthFailedError,
  BadArgumentsError,
  BadReplyError,
  ClosedError,
  ConnectError,
  ConnectionLossError,
  ERROR_TYPES,
  RequestTooLargeError,
  SessionExpiredError,
  SessionLostError,
  TimeoutError,
  TransactionError,
  UnknownCodeError,
} from './errors.ts';
import type { CallFailure, FailureKind } from './machine/call.ts';
import { METHODS } from './methods.ts';
import type { About } from './requester.ts';
import { type ErrorDetails, ZooKeeperError } from './zookeeper-error.ts';

/** By the table; 'refused' for errors that are not of the service or the session. */
export function retryClassOf(error: unknown): RetryClass {
  return error instanceof ZooKeeperError ? ERRORS[error.code].retryClass : 'refused';
}

/**
 * Creates the error of a failed request.
 *
 * @param cause the reason of an aborted signal, the socket's error
 */
export function makeError(failure: CallFailure, about: About, cause?: unknown): ZooKeeperError {
  const details = { ...about, server: failure.server, ...(cause === undefined ? {} : { cause }) };
  if (failure.kind === 'refused') {
    const type = TYPE_OF_NUMBER.get(failure.code);
    if (type === undefined) return new UnknownCodeError({ ...details, errorCode: failure.code });
    return new type(READS.has(about.operation) ? { ...details, outcome: 'not-applied' } : details);
  }
  const outcome = failure.wasSent && !READS.has(about.operation) ? 'unknown' : 'not-applied';
  return new TYPE_OF_KIND[failure.kind]({ ...details, outcome, detail: failure.detail });
}

/**
 * The same failure, reported for the larger operation that it ended and that may have taken effect: for instance when a
 * request that looked for the result of another one has failed.
 */
export function asDoubtful(error: ZooKeeperError, about: About): ZooKeeperError {
  if (error.outcome === 'unknown' || error.code === 'DECODEFAILED') return error;
  if (error instanceof ConnectError || error instanceof TransactionError) return error;
  const type = ERROR_TYPES[error.code] as PlainErrorType;
  const errorCode = error.errorCode ?? undefined;
  return new type({ ...about, server: error.server, outcome: 'unknown', errorCode, cause: error.cause ?? error });
}

/** A class whose constructor takes only the details. */
type PlainErrorType = new (details: ErrorDetails) => ZooKeeperError;

const READS: ReadonlySet<string> = new Set(
  Object.entries(METHODS).flatMap(([method, kind]) => (kind === 'read' ? [method] : [])),
);

const TYPE_OF_KIND: Readonly<Record<FailureKind, PlainErrorType>> = {
  'connection-lost': ConnectionLossError,
  'session-lost': SessionLostError,
  'session-expired': SessionExpiredError,
  'auth-failed': AuthFailedError,
  closed: ClosedError,
  'timed-out': TimeoutError,
  aborted: AbortedError,
  'request-too-large': RequestTooLargeError,
  'malformed-request': BadArgumentsError,
  'bad-reply': BadReplyError,
};

const TYPE_OF_NUMBER: ReadonlyMap<number, PlainErrorType> = new Map(
  Object.entries(ERROR_TYPES).flatMap(([code, type]) => {
    const { number } = ERRORS[code as ZooKeeperCode];
    return number === null ? [] : [[number, type as PlainErrorType]];
  }),
);
