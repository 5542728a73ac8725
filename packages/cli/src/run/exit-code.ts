import type { ZooKeeperCode } from '@meerkat/client';

/**
 * How a command ends. A script may rely on these: a number keeps its meaning, and new ones are only added. docs/cli.md
 * lists them; a test holds the list to this table.
 *
 * `server` and `up` end with the codes of ZooKeeper's server instead (ExitCode of `@meerkat/server`).
 */
export const CommandExit = {
  /** Done. */
  ok: 0,
  /** The answer is no: a difference was found, nothing matched. */
  no: 1,
  /** The command line, a profile or a file that it names cannot be understood. */
  invocation: 2,
  /** No server could be reached. */
  unreachable: 3,
  /** The service refuses the credentials, or wants some. */
  credentials: 4,
  /** There is no such znode. */
  noNode: 10,
  /** The znode exists already. */
  nodeExists: 11,
  /** The znode has children. */
  notEmpty: 12,
  /** The znode has another version than was asked for. */
  badVersion: 13,
  /** The ACL does not allow it. */
  noAuth: 14,
  /** The ACL is none that the service takes. */
  invalidAcl: 15,
  /** Ephemeral znodes have no children. */
  ephemeralParent: 16,
  /** A quota allows no more. */
  quotaExceeded: 17,
  /** The service does not take the arguments: a path, a name, a number. */
  badArguments: 18,
  /** The request is longer than the service takes. */
  tooLarge: 19,
  /** The connection was lost, and nobody knows whether the change happened. */
  outcomeUnknown: 20,
  /** The session has ended: its ephemeral znodes are gone. */
  sessionLost: 21,
  /** The server answers reads only. */
  readOnly: 22,
  /** The service cannot do it: too old, switched off, or the wrong moment of a reconfiguration. */
  unsupported: 23,
  /** The service failed, or is overloaded. */
  service: 24,
  /** The data are not what they were said to be: no JSON, no gzip. */
  undecodable: 25,
  /** A copy is not the same as its source. */
  unverified: 26,
  /** `lock` and `elect`: what was held is not certain any more, and the command was ended. */
  ownershipLost: 27,
  /** A local file could not be read or written. */
  file: 28,
  /** A mistake of this program. */
  bug: 70,
  /** Not within `--timeout`, as timeout(1) ends. */
  timedOut: 124,
  /** Ended by Ctrl-C; 128 + SIGINT. */
  interrupted: 130,
  /** Whoever read the output has gone; 128 + SIGPIPE. */
  pipeClosed: 141,
  /** Ended by SIGTERM or SIGHUP; 128 + SIGTERM. */
  terminated: 143,
} as const;
export type CommandExit = (typeof CommandExit)[keyof typeof CommandExit];

/** How a command ends that a ZooKeeper error has ended. */
export const EXIT_OF_ERROR: Readonly<Record<ZooKeeperCode, CommandExit>> = {
  SYSTEMERROR: CommandExit.service,
  RUNTIMEINCONSISTENCY: CommandExit.service,
  DATAINCONSISTENCY: CommandExit.service,
  CONNECTIONLOSS: CommandExit.outcomeUnknown,
  MARSHALLINGERROR: CommandExit.unsupported,
  UNIMPLEMENTED: CommandExit.unsupported,
  OPERATIONTIMEOUT: CommandExit.timedOut,
  BADARGUMENTS: CommandExit.badArguments,
  UNKNOWNSESSION: CommandExit.sessionLost,
  NEWCONFIGNOQUORUM: CommandExit.unsupported,
  RECONFIGINPROGRESS: CommandExit.unsupported,
  APIERROR: CommandExit.service,
  NONODE: CommandExit.noNode,
  NOAUTH: CommandExit.noAuth,
  BADVERSION: CommandExit.badVersion,
  NOCHILDRENFOREPHEMERALS: CommandExit.ephemeralParent,
  NODEEXISTS: CommandExit.nodeExists,
  NOTEMPTY: CommandExit.notEmpty,
  SESSIONEXPIRED: CommandExit.sessionLost,
  INVALIDCALLBACK: CommandExit.service,
  INVALIDACL: CommandExit.invalidAcl,
  AUTHFAILED: CommandExit.credentials,
  SESSIONMOVED: CommandExit.service,
  NOTREADONLY: CommandExit.readOnly,
  EPHEMERALONLOCALSESSION: CommandExit.unsupported,
  NOWATCHER: CommandExit.noNode,
  REQUESTTIMEOUT: CommandExit.timedOut,
  RECONFIGDISABLED: CommandExit.unsupported,
  SESSIONCLOSEDREQUIRESASLAUTH: CommandExit.credentials,
  QUOTAEXCEEDED: CommandExit.quotaExceeded,
  THROTTLEDOP: CommandExit.service,
  UNKNOWNCODE: CommandExit.service,
  SESSIONLOST: CommandExit.sessionLost,
  CLOSED: CommandExit.bug,
  TIMEOUT: CommandExit.timedOut,
  ABORTED: CommandExit.interrupted,
  REQUESTTOOLARGE: CommandExit.tooLarge,
  BADREPLY: CommandExit.service,
  CONNECTFAILED: CommandExit.unreachable,
  // What refused the transaction decides; this stands for one that nobody knows.
  TRANSACTIONFAILED: CommandExit.service,
  DECODEFAILED: CommandExit.undecodable,
};
