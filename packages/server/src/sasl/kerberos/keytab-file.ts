import { readFileSync, statSync } from 'node:fs';
import { type Keytab, parseKeytab } from '@meerkat/client/kerberos';
import { ExitCode, ServerError } from '../../exit-codes.ts';
import { describeUnreadable } from '../../unreadable-file.ts';

/** Milliseconds between two looks at the file, when a ticket needs a key that is not there. */
const LOOK_MS = 1000;

/** A keytab on disk. It is read again when a ticket needs a key that it did not have: keys are renewed while servers run. */
export class KeytabFile {
  readonly path: string;
  #keytab: Keytab;
  #stamp: string;
  #lookedMs = 0;
  #fault: string | null = null;

  /** @throws ServerError when it cannot be used */
  constructor(path: string) {
    this.path = path;
    this.#stamp = stampOf(path);
    this.#keytab = readKeytab(path);
  }

  /**
   * The principal of this service as the keytab has it, with its realm.
   *
   * @param name with or without realm
   * @throws ServerError when it has none, or several
   */
  resolvePrincipal(name: string): string {
    const { principals } = this.#keytab;
    const found = principals.filter((principal) => principal === name || principal.startsWith(`${name}@`));
    if (found.length === 1) return found[0]!;
    const what = found.length === 0 ? `has no key of ${name}` : `has keys of ${found.join(' and ')}`;
    throw refusal(
      this.path,
      `${what}; it is for ${principals.join(', ') || 'no principal'}`,
      "correct principal or keyTab of the login's section",
    );
  }

  /** Why the file could not be used when it was looked at last; the keys are those from before. Null: it could. */
  get fault(): string | null {
    return this.#fault;
  }

  /** @param mustBeNew the one that was given last did not do */
  get(mustBeNew: boolean, nowMs: number): Keytab {
    if (mustBeNew && nowMs >= this.#lookedMs + LOOK_MS) {
      this.#lookedMs = nowMs;
      this.#maybeRead();
    }
    return this.#keytab;
  }

  /** A file that cannot be used now leaves the keys that were read before. */
  #maybeRead(): void {
    try {
      this.#fault = null;
      const stamp = stampOf(this.path);
      if (stamp === this.#stamp) return;
      this.#keytab = readKeytab(this.path);
      this.#stamp = stamp;
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
      this.#fault = error.message;
    }
  }
}

function stampOf(path: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(path);
    return `${ino} ${size} ${mtimeMs}`;
  } catch (error) {
    throw unreadable(path, error);
  }
}

function readKeytab(path: string): Keytab {
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    throw unreadable(path, error);
  }
  const keytab = parseKeytab(bytes);
  if (keytab === null) throw refusal(path, 'is no keytab of version 0x0502', 'write one with ktadd of kadmin');
  return keytab;
}

function unreadable(path: string, error: unknown): ServerError {
  return refusal(
    path,
    `cannot be read: ${describeUnreadable(path, error)}`,
    "correct keyTab of the login's section, or the rights of the file",
  );
}

function refusal(path: string, what: string, todo: string): ServerError {
  return new ServerError(ExitCode.invocation, `the keytab ${path} ${what}: ${todo}`);
}
