import { ConnectError, isZooKeeperError, TransactionError, type ZooKeeperError } from '@meerkat/client';
import { CommandFailure } from './command-failure.ts';
import { CommandExit, EXIT_OF_ERROR } from './exit-code.ts';

/** What a command that failed reports, for people and for scripts. */
export interface Failure {
  readonly exitCode: CommandExit;
  /** ZooKeeper's name of the error, or one of this program's: INVOCATION, FAILED, BUG. */
  readonly code: string;
  readonly message: string;
  /** The znode that it is about. */
  readonly path: string | null;
}

/** Explains anything that was thrown. Words of the client's interface become words of this command line. */
export function explainFailure(error: unknown): Failure {
  if (error instanceof CommandFailure) {
    const code = error.exitCode === CommandExit.invocation ? 'INVOCATION' : 'FAILED';
    const cause = isZooKeeperError(error.cause) ? error.cause : null;
    return { exitCode: error.exitCode, code: cause?.code ?? code, message: error.message, path: cause?.path ?? null };
  }
  if (isZooKeeperError(error)) return explainZooKeeperError(error);
  // What waits for something else than a request stops by itself at a signal.
  if (error instanceof Error && error.name === 'AbortError') {
    return { exitCode: CommandExit.interrupted, code: 'ABORTED', message: 'interrupted', path: null };
  }
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { exitCode: CommandExit.bug, code: 'BUG', message: `a mistake of this program: ${message}`, path: null };
}

function explainZooKeeperError(error: ZooKeeperError): Failure {
  const { code, path } = error;
  if (error instanceof ConnectError)
    return { exitCode: EXIT_OF_ERROR[code], code, message: attemptsOf(error), path: null };
  // The operation that was refused says more than that the transaction was.
  if (error instanceof TransactionError && isZooKeeperError(error.cause)) {
    const inner = explainZooKeeperError(error.cause);
    return { ...inner, message: `operation ${error.index + 1} of the transaction: ${inner.message}; nothing was done` };
  }
  const meaning = meaningOf(error);
  const place = path === null ? '' : ` ${path}`;
  const message = meaning === undefined ? error.message : `cannot ${verbOf(error)}${place}: ${meaning}`;
  return { exitCode: EXIT_OF_ERROR[code], code, message, path };
}

/** Every address, why it failed, and what to look at: without the names of the client's method and class. */
function attemptsOf({ message, code }: ConnectError): string {
  return message.replace(/^connect: /, '').replace(` (${code})`, '');
}

/** As people call what the client's methods are called. */
const VERBS: Readonly<Record<string, string>> = {
  get: 'read',
  set: 'set',
  exists: 'look at',
  children: 'list',
  getAcl: 'read the ACL of',
  setAcl: 'set the ACL of',
  createParents: 'create',
  createProtected: 'create',
  deleteRecursive: 'delete',
  descendantCount: 'count what is below',
};

function verbOf({ operation }: ZooKeeperError): string {
  return VERBS[operation] ?? operation;
}

function meaningOf({ code, operation }: ZooKeeperError): string | undefined {
  const isOfParent = operation.startsWith('create') || operation.startsWith('delete');
  if (code === 'NONODE' && !operation.startsWith('create')) return 'there is no such znode';
  if (code !== 'NOAUTH') return MEANINGS[code];
  if (isOfParent) return 'the ACL of its parent does not allow it; "acl" shows it, --auth gives credentials';
  if (operation === 'getAcl') return 'the ACL does not even allow that; --auth gives credentials';
  return 'the ACL does not allow it; "acl" shows it, --auth gives credentials';
}

/** What to do, where this command line has other words for it than the client. */
const MEANINGS: Readonly<Partial<Record<string, string>>> = {
  NONODE: 'there is no such znode; a create needs its parent, which --parents makes',
  NODEEXISTS: 'the znode exists already; "set" changes it',
  NOTEMPTY: 'the znode has children; -r deletes them too',
  BADVERSION: 'the znode has another version: it was changed; look at it again ("stat")',
  INVALIDACL: 'the ACL is empty or names a scheme or id that the server does not take; "auth" needs --auth',
  NOCHILDRENFOREPHEMERALS: 'its parent is ephemeral, and such znodes have no children',
  AUTHFAILED:
    'the server refused the credentials; check --auth, --sasl or those of the profile; --auth is scheme:id, such as digest:user:password',
  QUOTAEXCEEDED: 'a quota above the znode allows no more; "quota" shows and changes it',
  TIMEOUT: 'no answer within --timeout; it may have happened all the same',
};
