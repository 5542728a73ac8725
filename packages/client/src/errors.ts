import { describeAttempts } from './connect-report.ts';
import { ERRORS, isRetryable, type Outcome, type RetryClass, type ZooKeeperCode } from './error-table.ts';
import type { CallFailure, FailureKind } from './machine/call.ts';
import type { FailedAttempt } from './machine/ports.ts';
import type { About } from './requester.ts';

export type { Outcome, ZooKeeperCode } from './error-table.ts';

/** What is known about a failure besides its class. */
export interface ErrorDetails {
  /** The method that failed. */
  readonly operation: string;
  /** As the user wrote it, without the chroot; null when the operation has none. */
  readonly path: string | null;
  /** host:port; null or absent when no server was involved. */
  readonly server?: string | null | undefined;
  /** Instead of what the table says of the code. */
  readonly outcome?: Outcome | undefined;
  /** What the server, the system or the caller said; stands in the message. */
  readonly detail?: string | undefined;
  /** Of an UnknownCodeError and a TransactionError: the number that the server sent. */
  readonly errorCode?: number | undefined;
  readonly cause?: unknown;
}

/**
 * Everything this client rejects with, but for a callback's own error.
 *
 * `instanceof` tells the classes apart, and so does `code`, in a `switch` over {@link AnyZooKeeperError} also
 * completely.
 *
 * @example
 * try {
 *   await client.set('/config', 'on', { version: 3 });
 * } catch (error) {
 *   if (!(error instanceof BadVersionError)) throw error;
 *   console.log(`another client has changed ${error.path}`);
 * }
 */
export abstract class ZooKeeperError extends Error {
  readonly code: ZooKeeperCode;
  /** The number that the protocol has for it; null for what only this client knows. */
  readonly errorCode: number | null;
  readonly operation: string;
  /** As the caller wrote it, without the chroot. */
  readonly path: string | null;
  /** host:port of the server that was asked. */
  readonly server: string | null;
  readonly outcome: Outcome;
  /** Trying again later may succeed without any change. Whether it is safe, `outcome` says. */
  readonly isRetryable: boolean;

  constructor(details: ErrorDetails, code: ZooKeeperCode = codeOf(new.target)) {
    const meaning = ERRORS[code];
    const server = details.server ?? null;
    super(makeMessage(code, details, server), 'cause' in details ? { cause: details.cause } : undefined);
    this.code = code;
    this.errorCode = details.errorCode ?? meaning.number;
    this.operation = details.operation;
    this.path = details.path;
    this.server = server;
    this.outcome = details.outcome ?? meaning.outcome;
    this.isRetryable = isRetryable(code);
  }
}

// Answers of the server. What each means stands in the table below.

export class SystemError extends ZooKeeperError {
  declare readonly code: 'SYSTEMERROR';
}
export class RuntimeInconsistencyError extends ZooKeeperError {
  declare readonly code: 'RUNTIMEINCONSISTENCY';
}
export class DataInconsistencyError extends ZooKeeperError {
  declare readonly code: 'DATAINCONSISTENCY';
}
/** The connection broke before the reply. See `outcome`. */
export class ConnectionLossError extends ZooKeeperError {
  declare readonly code: 'CONNECTIONLOSS';
}
export class MarshallingError extends ZooKeeperError {
  declare readonly code: 'MARSHALLINGERROR';
}
export class UnimplementedError extends ZooKeeperError {
  declare readonly code: 'UNIMPLEMENTED';
}
export class OperationTimeoutError extends ZooKeeperError {
  declare readonly code: 'OPERATIONTIMEOUT';
}
/** An argument that no server would take, found by the server or already by this client. */
export class BadArgumentsError extends ZooKeeperError {
  declare readonly code: 'BADARGUMENTS';
}
export class UnknownSessionError extends ZooKeeperError {
  declare readonly code: 'UNKNOWNSESSION';
}
export class NewConfigNoQuorumError extends ZooKeeperError {
  declare readonly code: 'NEWCONFIGNOQUORUM';
}
export class ReconfigInProgressError extends ZooKeeperError {
  declare readonly code: 'RECONFIGINPROGRESS';
}
export class ApiError extends ZooKeeperError {
  declare readonly code: 'APIERROR';
}
export class NoNodeError extends ZooKeeperError {
  declare readonly code: 'NONODE';
}
export class NoAuthError extends ZooKeeperError {
  declare readonly code: 'NOAUTH';
}
export class BadVersionError extends ZooKeeperError {
  declare readonly code: 'BADVERSION';
}
export class NoChildrenForEphemeralsError extends ZooKeeperError {
  declare readonly code: 'NOCHILDRENFOREPHEMERALS';
}
export class NodeExistsError extends ZooKeeperError {
  declare readonly code: 'NODEEXISTS';
}
export class NotEmptyError extends ZooKeeperError {
  declare readonly code: 'NOTEMPTY';
}
/** The server has ended the session: its ephemeral znodes are gone. */
export class SessionExpiredError extends ZooKeeperError {
  declare readonly code: 'SESSIONEXPIRED';
}
export class InvalidCallbackError extends ZooKeeperError {
  declare readonly code: 'INVALIDCALLBACK';
}
export class InvalidAclError extends ZooKeeperError {
  declare readonly code: 'INVALIDACL';
}
/** The server refused the credentials; the client is of no use any more. */
export class AuthFailedError extends ZooKeeperError {
  declare readonly code: 'AUTHFAILED';
}
export class SessionMovedError extends ZooKeeperError {
  declare readonly code: 'SESSIONMOVED';
}
export class NotReadOnlyError extends ZooKeeperError {
  declare readonly code: 'NOTREADONLY';
}
export class EphemeralOnLocalSessionError extends ZooKeeperError {
  declare readonly code: 'EPHEMERALONLOCALSESSION';
}
export class NoWatcherError extends ZooKeeperError {
  declare readonly code: 'NOWATCHER';
}
export class RequestTimeoutError extends ZooKeeperError {
  declare readonly code: 'REQUESTTIMEOUT';
}
export class ReconfigDisabledError extends ZooKeeperError {
  declare readonly code: 'RECONFIGDISABLED';
}
export class SaslRequiredError extends ZooKeeperError {
  declare readonly code: 'SESSIONCLOSEDREQUIRESASLAUTH';
}
export class QuotaExceededError extends ZooKeeperError {
  declare readonly code: 'QUOTAEXCEEDED';
}
export class ThrottledError extends ZooKeeperError {
  declare readonly code: 'THROTTLEDOP';
}
/** A number that no known server sends; `errorCode` has it. */
export class UnknownCodeError extends ZooKeeperError {
  declare readonly code: 'UNKNOWNCODE';
}

// What this client finds by itself.

/** No server has answered for the session's timeout: the session may be over, and with it what depended on it. */
export class SessionLostError extends ZooKeeperError {
  declare readonly code: 'SESSIONLOST';
}
export class ClosedError extends ZooKeeperError {
  declare readonly code: 'CLOSED';
}
/** `timeoutMs` has passed. A request that was sent may still take effect: see `outcome`. */
export class TimeoutError extends ZooKeeperError {
  declare readonly code: 'TIMEOUT';
}
/** `signal` was aborted; `cause` is its reason. Called AbortError, as everywhere in JavaScript. */
export class AbortedError extends ZooKeeperError {
  declare readonly code: 'ABORTED';
}
export class RequestTooLargeError extends ZooKeeperError {
  declare readonly code: 'REQUESTTOOLARGE';
}
export class BadReplyError extends ZooKeeperError {
  declare readonly code: 'BADREPLY';
}

/** No server could be reached. The message lists every address that was tried, why it failed, and what to do. */
export class ConnectError extends ZooKeeperError {
  declare readonly code: 'CONNECTFAILED';
  readonly attempts: readonly FailedAttempt[];

  constructor(attempts: readonly FailedAttempt[], cause?: unknown) {
    const detail = describeAttempts(attempts);
    super({ operation: 'connect', path: null, detail, ...(cause === undefined ? {} : { cause }) });
    this.attempts = attempts;
  }
}

/** A transaction was refused: none of its operations has happened. `cause` is what was wrong with the one at `index`. */
export class TransactionError extends ZooKeeperError {
  declare readonly code: 'TRANSACTIONFAILED';
  declare readonly cause: ZooKeeperError;
  /** Which of `operations` was refused, from 0. */
  readonly index: number;
  readonly operations: readonly About[];

  /** @param operation the method that failed: of the client, or of what is built upon it */
  constructor(index: number, operations: readonly About[], cause: ZooKeeperError, operation = 'transaction') {
    super({
      operation,
      path: cause.path,
      server: cause.server,
      detail: `operation ${index + 1} of ${operations.length}, ${cause.message}`,
      errorCode: cause.errorCode ?? undefined,
      cause,
    });
    this.index = index;
    this.operations = operations;
  }
}

/** Every class, for a complete `switch` over `code`. A codec's DecodeError, which never comes from the service, is apart. */
export type AnyZooKeeperError =
  | SystemError
  | RuntimeInconsistencyError
  | DataInconsistencyError
  | ConnectionLossError
  | MarshallingError
  | UnimplementedError
  | OperationTimeoutError
  | BadArgumentsError
  | UnknownSessionError
  | NewConfigNoQuorumError
  | ReconfigInProgressError
  | ApiError
  | NoNodeError
  | NoAuthError
  | BadVersionError
  | NoChildrenForEphemeralsError
  | NodeExistsError
  | NotEmptyError
  | SessionExpiredError
  | InvalidCallbackError
  | InvalidAclError
  | AuthFailedError
  | SessionMovedError
  | NotReadOnlyError
  | EphemeralOnLocalSessionError
  | NoWatcherError
  | RequestTimeoutError
  | ReconfigDisabledError
  | SaslRequiredError
  | QuotaExceededError
  | ThrottledError
  | UnknownCodeError
  | SessionLostError
  | ClosedError
  | TimeoutError
  | AbortedError
  | RequestTooLargeError
  | BadReplyError
  | ConnectError
  | TransactionError;

/**
 * True for the errors of the service and the session, and tells them apart by `code`.
 *
 * @example
 * if (isZooKeeperError(error) && error.code === 'CONNECTFAILED') for (const { host } of error.attempts) console.log(host);
 */
export function isZooKeeperError(error: unknown): error is AnyZooKeeperError {
  return error instanceof ZooKeeperError && error.code !== 'DECODEFAILED';
}

/** What the table says of it; 'refused' for whatever is no error of the service or the session. */
export function retryClassOf(error: unknown): RetryClass {
  return error instanceof ZooKeeperError ? ERRORS[error.code].retryClass : 'refused';
}

/**
 * Makes the error of a request that failed.
 *
 * @param cause what stands behind it: the reason of an aborted signal, the socket's error
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
 * The same failure, told of the larger operation that it ended and that may have taken effect: a request that only
 * looked for the result of another one has failed, say.
 */
export function asDoubtful(error: ZooKeeperError, about: About): ZooKeeperError {
  if (error.outcome === 'unknown' || error.code === 'DECODEFAILED') return error;
  if (error instanceof ConnectError || error instanceof TransactionError) return error;
  const type = TYPES[error.code] as PlainErrorType;
  const errorCode = error.errorCode ?? undefined;
  return new type({ ...about, server: error.server, outcome: 'unknown', errorCode, cause: error.cause ?? error });
}

type ErrorType<Code extends ZooKeeperCode = ZooKeeperCode> = abstract new (
  ...details: never
) => ZooKeeperError & { readonly code: Code };

/** A class that is made of details alone. */
type PlainErrorType = new (details: ErrorDetails) => ZooKeeperError;

/** Methods that change nothing: whether they were carried out is all the same. */
const READS: ReadonlySet<string> = new Set([
  'exists',
  'get',
  'children',
  'descendantCount',
  'ephemerals',
  'getAcl',
  'sync',
  'ping',
  'whoAmI',
  'config',
  'checkWatches',
  'multiRead',
]);

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

/** The class of each code; what the code means stands in `error-table.ts`. */
const TYPES: { readonly [Code in AnyZooKeeperError['code']]: ErrorType<Code> } = {
  SYSTEMERROR: SystemError,
  RUNTIMEINCONSISTENCY: RuntimeInconsistencyError,
  DATAINCONSISTENCY: DataInconsistencyError,
  CONNECTIONLOSS: ConnectionLossError,
  MARSHALLINGERROR: MarshallingError,
  UNIMPLEMENTED: UnimplementedError,
  OPERATIONTIMEOUT: OperationTimeoutError,
  BADARGUMENTS: BadArgumentsError,
  UNKNOWNSESSION: UnknownSessionError,
  NEWCONFIGNOQUORUM: NewConfigNoQuorumError,
  RECONFIGINPROGRESS: ReconfigInProgressError,
  APIERROR: ApiError,
  NONODE: NoNodeError,
  NOAUTH: NoAuthError,
  BADVERSION: BadVersionError,
  NOCHILDRENFOREPHEMERALS: NoChildrenForEphemeralsError,
  NODEEXISTS: NodeExistsError,
  NOTEMPTY: NotEmptyError,
  SESSIONEXPIRED: SessionExpiredError,
  INVALIDCALLBACK: InvalidCallbackError,
  INVALIDACL: InvalidAclError,
  AUTHFAILED: AuthFailedError,
  SESSIONMOVED: SessionMovedError,
  NOTREADONLY: NotReadOnlyError,
  EPHEMERALONLOCALSESSION: EphemeralOnLocalSessionError,
  NOWATCHER: NoWatcherError,
  REQUESTTIMEOUT: RequestTimeoutError,
  RECONFIGDISABLED: ReconfigDisabledError,
  SESSIONCLOSEDREQUIRESASLAUTH: SaslRequiredError,
  QUOTAEXCEEDED: QuotaExceededError,
  THROTTLEDOP: ThrottledError,
  UNKNOWNCODE: UnknownCodeError,
  SESSIONLOST: SessionLostError,
  CLOSED: ClosedError,
  TIMEOUT: TimeoutError,
  ABORTED: AbortedError,
  REQUESTTOOLARGE: RequestTooLargeError,
  BADREPLY: BadReplyError,
  CONNECTFAILED: ConnectError,
  TRANSACTIONFAILED: TransactionError,
};

const CODE_OF_TYPE: ReadonlyMap<unknown, ZooKeeperCode> = new Map(
  Object.entries(TYPES).map(([code, type]) => [type, code as ZooKeeperCode]),
);

const TYPE_OF_NUMBER: ReadonlyMap<number, PlainErrorType> = new Map(
  Object.entries(TYPES).flatMap(([code, type]) => {
    const { number } = ERRORS[code as ZooKeeperCode];
    return number === null ? [] : [[number, type as PlainErrorType]];
  }),
);

// Names stand on the prototypes, so that the first line of a stack has them too.
for (const type of Object.values(TYPES)) {
  const value = type === AbortedError ? 'AbortError' : type.name;
  Object.defineProperty(type.prototype, 'name', { value, configurable: true, writable: true });
}

/** A class that is not in the table of classes reports its code itself, or inherits that of one that is. */
function codeOf(type: { readonly name: string }): ZooKeeperCode {
  for (let known = type; known !== null; known = Object.getPrototypeOf(known)) {
    const code = CODE_OF_TYPE.get(known);
    if (code !== undefined) return code;
  }
  throw new TypeError(`${type.name} must tell its code to the constructor of ZooKeeperError`);
}

/** `set /config: the znode has another version … (BADVERSION -103, 10.0.0.7:2181)` */
function makeMessage(code: ZooKeeperCode, details: ErrorDetails, server: string | null): string {
  const { operation, path, detail = '' } = details;
  const meaning = ERRORS[code];
  const subject = path === null ? operation : `${operation} ${path}`;
  const what = [meaning.text, detail].filter((part) => part !== '').join(': ');
  const number = details.errorCode ?? meaning.number;
  const outcome = (details.outcome ?? meaning.outcome) === 'unknown' ? '; it may have taken effect' : '';
  const origin = [number === null ? code : `${code} ${number}`, ...(server === null ? [] : [server])].join(', ');
  return `${subject}: ${what}${outcome} (${origin})`;
}
