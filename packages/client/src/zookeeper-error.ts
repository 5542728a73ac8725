import { ERRORS, isRetryable, type Outcome, type ZooKeeperCode } from './error-table.ts';

/** The details of a failure besides its class. */
export interface ErrorDetails {
  /** The method that failed. */
  readonly operation: string;
  /** The user's path, without the chroot; null when the operation has none. */
  readonly path: string | null;
  /** host:port; null or absent when no server was involved. */
  readonly server?: string | null | undefined;
  /** Overrides the default of the code. */
  readonly outcome?: Outcome | undefined;
  /** The message of the server, the system or the caller; part of the error message. */
  readonly detail?: string | undefined;
  /** For an UnknownCodeError and a TransactionError: the number that the server sent. */
  readonly errorCode?: number | undefined;
  readonly cause?: unknown;
}

/**
 * The base class of all rejections of this client, except for errors of callbacks.
 *
 * Distinguish the classes by `instanceof`, or by `code`, in a `switch` over {@link AnyZooKeeperError} even
 * exhaustively.
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
  /** The protocol's number; null for errors detected by the client. */
  readonly errorCode: number | null;
  readonly operation: string;
  /** The caller's path, without the chroot. */
  readonly path: string | null;
  /** host:port of the server. */
  readonly server: string | null;
  readonly outcome: Outcome;
  /** A later retry may succeed without any change. Whether it is safe depends on `outcome`. */
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

const CODE_OF_TYPE: Map<unknown, ZooKeeperCode> = new Map();

/** Sets the code of each class, and the name on its prototype, so that the first line of a stack has it too. */
export function registerErrors(
  types: Readonly<Record<string, { readonly name: string; readonly prototype: object }>>,
): void {
  for (const [code, type] of Object.entries(types)) {
    CODE_OF_TYPE.set(type, code as ZooKeeperCode);
    const value = code === 'ABORTED' ? 'AbortError' : type.name;
    Object.defineProperty(type.prototype, 'name', { value, configurable: true, writable: true });
  }
}

/** A class that is not in the table of classes defines its own code, or inherits that of one that is. */
function codeOf(type: { readonly name: string }): ZooKeeperCode {
  for (let known = type; known !== null; known = Object.getPrototypeOf(known)) {
    const code = CODE_OF_TYPE.get(known);
    if (code !== undefined) return code;
  }
  throw new TypeError(`${type.name} must pass its code to the constructor of ZooKeeperError`);
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
