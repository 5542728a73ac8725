import { ErrorCode } from '@meerkat/protocol';
import type { Outcome, ZooKeeperCode } from './errors.ts';

/** What a code of an error means. */
export interface ErrorMeaning {
  /** The protocol's number; null for what only a client can find. */
  readonly number: number | null;
  /** Unless the one who makes the error knows better. */
  readonly outcome: Outcome;
  /** Trying again later may succeed without anybody changing anything. */
  readonly isRetryable: boolean;
  /** What happened, and what to do. Empty where the details of the error say it all. */
  readonly text: string;
}

/** The one table of errors. The class of each code stands in `errors.ts`. */
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
  CONNECTIONLOSS: doubtfulForNow(ErrorCode.connectionLoss, 'the connection was lost'),
  MARSHALLINGERROR: refused(
    ErrorCode.marshallingError,
    'the server could not decode the request; it may be older than the operation',
  ),
  UNIMPLEMENTED: refused(
    ErrorCode.unimplemented,
    'the server does not have this operation, or it is switched off (TTL znodes need extendedTypesEnabled)',
  ),
  OPERATIONTIMEOUT: doubtfulForNow(ErrorCode.operationTimeout, 'the service could not finish the operation in time'),
  BADARGUMENTS: refused(ErrorCode.badArguments, 'the arguments are not acceptable'),
  UNKNOWNSESSION: refused(ErrorCode.unknownSession, 'the service does not know the session'),
  NEWCONFIGNOQUORUM: refusedForNow(
    ErrorCode.newConfigNoQuorum,
    'too few servers of the new configuration are connected and up to date; start them as observers first',
  ),
  RECONFIGINPROGRESS: refusedForNow(
    ErrorCode.reconfigInProgress,
    'another reconfiguration is going on; try again when it is done',
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
    'the znode has another version than expected: somebody has changed it; read it again and decide anew',
  ),
  NOCHILDRENFOREPHEMERALS: refused(
    ErrorCode.noChildrenForEphemerals,
    'the parent is ephemeral and cannot have children',
  ),
  NODEEXISTS: refused(ErrorCode.nodeExists, 'the znode exists already'),
  NOTEMPTY: refused(ErrorCode.notEmpty, 'the znode has children; deleteRecursive deletes them too'),
  SESSIONEXPIRED: refused(
    ErrorCode.sessionExpired,
    'the session has expired: its ephemeral znodes are gone, and what they stood for must be taken anew',
  ),
  INVALIDCALLBACK: refused(
    ErrorCode.invalidCallback,
    'the server speaks of an invalid callback, a code that no server is known to send',
  ),
  INVALIDACL: refused(
    ErrorCode.invalidACL,
    'the ACL is empty, or names a scheme or an id that the server does not take ("auth" needs addAuth first)',
  ),
  AUTHFAILED: refused(ErrorCode.authFailed, 'the server refused the credentials; connect anew with others'),
  SESSIONMOVED: refusedForNow(ErrorCode.sessionMoved, 'the session has moved to another server'),
  NOTREADONLY: refusedForNow(
    ErrorCode.notReadOnly,
    'the connected server has no quorum and answers reads only; writes succeed once another one is found',
  ),
  EPHEMERALONLOCALSESSION: refused(
    ErrorCode.ephemeralOnLocalSession,
    'a local session cannot have ephemeral znodes, and the server does not upgrade it',
  ),
  NOWATCHER: refused(ErrorCode.noWatcher, 'this session has no such watch there'),
  REQUESTTIMEOUT: doubtfulForNow(ErrorCode.requestTimeout, 'the server gave the request up'),
  RECONFIGDISABLED: refused(
    ErrorCode.reconfigDisabled,
    'reconfiguration is switched off; set reconfigEnabled=true on every server',
  ),
  SESSIONCLOSEDREQUIRESASLAUTH: refused(
    ErrorCode.sessionClosedRequireSaslAuth,
    'the server takes requests only after authentication; give credentials when connecting',
  ),
  QUOTAEXCEEDED: refused(ErrorCode.quotaExceeded, 'a quota above the znode allows no more'),
  THROTTLEDOP: refusedForNow(ErrorCode.throttledOp, 'the server is overloaded and has not tried it; try again later'),
  UNKNOWNCODE: doubtful(null, 'the server sent an error code that this client does not know'),
  SESSIONLOST: refused(
    null,
    'no server has answered for the whole session timeout; a new session is sought, what depended on the old one is void',
  ),
  CLOSED: refused(null, 'the client is closed'),
  TIMEOUT: doubtfulForNow(null, 'timeoutMs has passed'),
  ABORTED: doubtful(null, 'aborted by its signal'),
  REQUESTTOOLARGE: refused(
    null,
    'the request is larger than servers take (jute.maxbuffer); split the data or raise the limit on both sides',
  ),
  BADREPLY: doubtful(null, 'what the server sent is no answer to this request'),
  CONNECTFAILED: refusedForNow(null, ''),
  TRANSACTIONFAILED: refused(null, 'nothing of it was done'),
  DECODEFAILED: refused(null, 'the codec refuses the data'),
};

function refused(number: number | null, text: string): ErrorMeaning {
  return { number, outcome: 'not-applied', isRetryable: false, text };
}

/** Refused, but the reason passes. */
function refusedForNow(number: number | null, text: string): ErrorMeaning {
  return { number, outcome: 'not-applied', isRetryable: true, text };
}

/** It may have happened. */
function doubtful(number: number | null, text: string): ErrorMeaning {
  return { number, outcome: 'unknown', isRetryable: false, text };
}

/** It may have happened, and the reason passes. */
function doubtfulForNow(number: number | null, text: string): ErrorMeaning {
  return { number, outcome: 'unknown', isRetryable: true, text };
}
