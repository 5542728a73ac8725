import { ErrorCode } from '@meerkat/protocol';

/** ZooKeeper's names of its codes (KeeperException.Code), and ours for errors detected by the client. */
export type ZooKeeperCode =
  | 'SYSTEMERROR'
  | 'RUNTIMEINCONSISTENCY'
  | 'DATAINCONSISTENCY'
  | 'CONNECTIONLOSS'
  | 'MARSHALLINGERROR'
  | 'UNIMPLEMENTED'
  | 'OPERATIONTIMEOUT'
  | 'BADARGUMENTS'
  | 'UNKNOWNSESSION'
  | 'NEWCONFIGNOQUORUM'
  | 'RECONFIGINPROGRESS'
  | 'APIERROR'
  | 'NONODE'
  | 'NOAUTH'
  | 'BADVERSION'
  | 'NOCHILDRENFOREPHEMERALS'
  | 'NODEEXISTS'
  | 'NOTEMPTY'
  | 'SESSIONEXPIRED'
  | 'INVALIDCALLBACK'
  | 'INVALIDACL'
  | 'AUTHFAILED'
  | 'SESSIONMOVED'
  | 'NOTREADONLY'
  | 'EPHEMERALONLOCALSESSION'
  | 'NOWATCHER'
  | 'REQUESTTIMEOUT'
  | 'RECONFIGDISABLED'
  | 'SESSIONCLOSEDREQUIRESASLAUTH'
  | 'QUOTAEXCEEDED'
  | 'THROTTLEDOP'
  | 'UNKNOWNCODE'
  | 'SESSIONLOST'
  | 'CLOSED'
  | 'TIMEOUT'
  | 'ABORTED'
  | 'REQUESTTOOLARGE'
  | 'BADREPLY'
  | 'CONNECTFAILED'
  | 'TRANSACTIONFAILED'
  | 'DECODEFAILED';

/**
 * Whether a failed request has changed anything. `not-applied`: certainly not. `unknown`: perhaps; the connection broke
 * between the request and its reply.
 */
export type Outcome = 'not-applied' | 'unknown';

/**
 * When the caller may retry a failed request. Whether that is safe depends on the outcome.
 *
 * - connection: once there is a connection, in the same session
 * - session: once there is another session. Everything that belonged to this one is lost
 * - quorum: once the client has found a server with a quorum
 * - pause: after a while
 * - refused: never; the answer would be the same
 * - over: never; the caller has cancelled, or the client has ended
 */
export type RetryClass = 'connection' | 'session' | 'quorum' | 'pause' | 'refused' | 'over';

/** What a code of an error means. */
export interface ErrorMeaning {
  /** The protocol's number; null for errors detected by the client. */
  readonly number: number | null;
  /** The default; the place that creates the error may know better. */
  readonly outcome: Outcome;
  readonly retryClass: RetryClass;
  /** What happened, and what to do. Empty where the details of the error suffice. */
  readonly text: string;
}

/** All errors. The class of each code is in `errors.ts`. */
export const ERRORS: Readonly<Record<ZooKeeperCode, ErrorMeaning>> = {
  SYSTEMERROR: doubtful(ErrorCode.systemError, 'the server failed inside; its log says why'),
  RUNTIMEINCONSISTENCY: refused(
    ErrorCode.runtimeInconsistency,
    'not tried, because another operation of the same transaction was refused',
  ),
  DATAINCONSISTENCY: doubtful(
    ErrorCode.dataInconsistency,
    'the server found its own data inconsistent; look at its log before writing more',
  ),
  CONNECTIONLOSS: doubtfulFor('connection', ErrorCode.connectionLoss, 'the connection was lost'),
  MARSHALLINGERROR: refused(
    ErrorCode.marshallingError,
    'the server could not decode the request (it may be older than the operation), or it would become a longer txn or reply than the server allows',
  ),
  UNIMPLEMENTED: refused(
    ErrorCode.unimplemented,
    'the server does not have this operation, or it is switched off (TTL znodes need extendedTypesEnabled)',
  ),
  OPERATIONTIMEOUT: doubtfulFor(
    'pause',
    ErrorCode.operationTimeout,
    'the service could not finish the operation in time',
  ),
  BADARGUMENTS: refused(ErrorCode.badArguments, 'the arguments are not acceptable'),
  UNKNOWNSESSION: refusedFor('session', ErrorCode.unknownSession, 'the service does not know the session'),
  NEWCONFIGNOQUORUM: refusedFor(
    'pause',
    ErrorCode.newConfigNoQuorum,
    'too few servers of the new configuration are connected and up to date; start them as observers first',
  ),
  RECONFIGINPROGRESS: refusedFor(
    'pause',
    ErrorCode.reconfigInProgress,
    'another reconfiguration is in progress; try again when it is done',
  ),
  APIERROR: doubtful(ErrorCode.apiError, 'the server refused the request without saying why'),
  NONODE: refused(
    ErrorCode.noNode,
    'there is no such znode; of a create, its parent is missing (createParents makes it)',
  ),
  NOAUTH: refused(
    ErrorCode.noAuth,
    'the ACL does not allow it; see getAcl and whoAmI (create and delete need a permission on the parent)',
  ),
  BADVERSION: refused(
    ErrorCode.badVersion,
    'the znode has another version than expected: another client has changed it; read it again and decide again',
  ),
  NOCHILDRENFOREPHEMERALS: refused(
    ErrorCode.noChildrenForEphemerals,
    'the parent is ephemeral and cannot have children',
  ),
  NODEEXISTS: refused(ErrorCode.nodeExists, 'the znode exists already'),
  NOTEMPTY: refused(ErrorCode.notEmpty, 'the znode has children; deleteRecursive deletes them too'),
  SESSIONEXPIRED: refusedFor(
    'session',
    ErrorCode.sessionExpired,
    'the session has expired: its ephemeral znodes are gone, and what they stood for must be acquired again',
  ),
  INVALIDCALLBACK: refused(
    ErrorCode.invalidCallback,
    'the server speaks of an invalid callback, a code that no server is known to send',
  ),
  INVALIDACL: refused(
    ErrorCode.invalidACL,
    'the ACL is empty, or names a scheme or an id that the server does not take ("auth" needs addAuth first)',
  ),
  AUTHFAILED: refusedFor('over', ErrorCode.authFailed, 'the server refused the credentials; connect again with others'),
  SESSIONMOVED: refusedFor('connection', ErrorCode.sessionMoved, 'the session has moved to another server'),
  NOTREADONLY: refusedFor(
    'quorum',
    ErrorCode.notReadOnly,
    'the connected server has no quorum and answers reads only; writes succeed once another one is found',
  ),
  EPHEMERALONLOCALSESSION: refused(
    ErrorCode.ephemeralOnLocalSession,
    'a local session cannot have ephemeral znodes, and the server does not upgrade it',
  ),
  NOWATCHER: refused(ErrorCode.noWatcher, 'this session has no such watch there'),
  REQUESTTIMEOUT: doubtfulFor('pause', ErrorCode.requestTimeout, 'the server gave the request up'),
  RECONFIGDISABLED: refused(
    ErrorCode.reconfigDisabled,
    'the servers do not change their members while they run: that needs reconfigEnabled=true on every server',
  ),
  SESSIONCLOSEDREQUIRESASLAUTH: refused(
    ErrorCode.sessionClosedRequireSaslAuth,
    'the server takes requests only after authentication; give credentials when connecting',
  ),
  QUOTAEXCEEDED: refused(ErrorCode.quotaExceeded, 'a quota above the znode allows no more'),
  THROTTLEDOP: refusedFor(
    'pause',
    ErrorCode.throttledOp,
    'the server is overloaded and has not tried it; try again later',
  ),
  UNKNOWNCODE: doubtful(null, 'the server sent an error code that this client does not know'),
  SESSIONLOST: refusedFor(
    'session',
    null,
    'no server has answered for the whole session timeout; a new session is sought, what depended on the old one is void',
  ),
  CLOSED: refusedFor('over', null, 'the client is closed'),
  TIMEOUT: doubtfulFor('over', null, 'timeoutMs has passed'),
  ABORTED: doubtfulFor('over', null, 'aborted by its signal'),
  REQUESTTOOLARGE: refused(
    null,
    'the request is larger than servers take (jute.maxbuffer); split the data or raise the limit on both sides',
  ),
  BADREPLY: doubtful(null, 'what the server sent is no answer to this request'),
  CONNECTFAILED: refusedFor('pause', null, ''),
  TRANSACTIONFAILED: refused(null, 'nothing of it was done'),
  DECODEFAILED: refused(null, 'the codec refuses the data'),
};

/** Whether a later retry may succeed without any change. After a timeout that is another call. */
export function isRetryable(code: ZooKeeperCode): boolean {
  return code === 'TIMEOUT' || PASSING.has(ERRORS[code].retryClass);
}

const PASSING: ReadonlySet<RetryClass> = new Set(['connection', 'quorum', 'pause']);

function refused(number: number | null, text: string): ErrorMeaning {
  return { number, outcome: 'not-applied', retryClass: 'refused', text };
}

/** Refused, for a transient reason. */
function refusedFor(retryClass: RetryClass, number: number | null, text: string): ErrorMeaning {
  return { number, outcome: 'not-applied', retryClass, text };
}

/** It may have been applied. */
function doubtful(number: number | null, text: string): ErrorMeaning {
  return { number, outcome: 'unknown', retryClass: 'refused', text };
}

/** It may have been applied, and the failure is transient. */
function doubtfulFor(retryClass: RetryClass, number: number | null, text: string): ErrorMeaning {
  return { number, outcome: 'unknown', retryClass, text };
}
