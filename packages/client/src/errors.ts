import { describeAttempts } from './connect-report.ts';
import type { FailedAttempt } from './machine/ports.ts';
import type { About } from './requester.ts';
import { registerErrors, ZooKeeperError } from './zookeeper-error.ts';

// Errors of the server. Their meanings are in `error-table.ts`.

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
/** An argument that no server would accept, detected by the server or already by this client. */
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
/** The server refused the credentials; the client can no longer be used. */
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
/** A number that no known server sends; it is in `errorCode`. */
export class UnknownCodeError extends ZooKeeperError {
  declare readonly code: 'UNKNOWNCODE';
}

// Errors detected by this client.

/** No server has answered for the session's timeout: the session may be over, with everything that depended on it. */
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

/** No server could be reached. The message lists every attempted address, why it failed, and what to do. */
export class ConnectError extends ZooKeeperError {
  declare readonly code: 'CONNECTFAILED';
  readonly attempts: readonly FailedAttempt[];

  constructor(attempts: readonly FailedAttempt[], cause?: unknown) {
    const detail = describeAttempts(attempts);
    super({ operation: 'connect', path: null, detail, ...(cause === undefined ? {} : { cause }) });
    this.attempts = attempts;
  }
}

/** A transaction was refused: none of its operations was applied. `cause` is the error of the one at `index`. */
export class TransactionError extends ZooKeeperError {
  declare readonly code: 'TRANSACTIONFAILED';
  declare readonly cause: ZooKeeperError;
  /** The index in `operations` of the refused one. */
  readonly index: number;
  readonly operations: readonly About[];

  /** @param operation the failed method: of the client, or of a higher layer */
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

/**
 * Every class, for a complete `switch` over `code`. Not included is a codec's DecodeError, which never comes from the
 * service.
 */
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
 * True for errors of the service and the session; distinguish them by `code`.
 *
 * @example
 * if (isZooKeeperError(error) && error.code === 'CONNECTFAILED') for (const { host } of error.attempts) console.log(host);
 */
export function isZooKeeperError(error: unknown): error is AnyZooKeeperError {
  return error instanceof ZooKeeperError && error.code !== 'DECODEFAILED';
}

/** A class of errors with this code. */
type ErrorType<Code extends string> = abstract new (...details: never) => ZooKeeperError & { readonly code: Code };

/** The class of each code; for their meanings see `error-table.ts`. */
export const ERROR_TYPES: { readonly [Code in AnyZooKeeperError['code']]: ErrorType<Code> } = {
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

registerErrors(ERROR_TYPES);
