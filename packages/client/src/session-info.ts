import { showAs } from './inspect.ts';
import type { SessionIdentity } from './machine/session-ports.ts';

/**
 * The session, in a form that another process can resume: the option `session` of `connect`.
 *
 * The password gives access to the session, so `console.log` and `JSON.stringify` omit it.
 */
export class SessionInfo implements SessionIdentity {
  readonly id: bigint;
  /** 16 bytes. */
  readonly password: Uint8Array;
  /** As negotiated, milliseconds: the smallest timeout that a server granted to this session. */
  readonly timeoutMs: number;

  constructor({ id, password }: SessionIdentity, timeoutMs: number) {
    this.id = id;
    this.password = password;
    this.timeoutMs = timeoutMs;
  }

  /** Without the password; the id as the servers write it. */
  toJSON(): { readonly id: string; readonly timeoutMs: number } {
    return { id: `0x${BigInt.asUintN(64, this.id).toString(16)}`, timeoutMs: this.timeoutMs };
  }
}

showAs(SessionInfo, (session) => {
  const { id, timeoutMs } = session.toJSON();
  return `SessionInfo { id: ${id}, timeoutMs: ${timeoutMs}, password: <hidden> }`;
});
