import { showAs } from './inspect.ts';
import type { SessionIdentity } from './machine/session-ports.ts';

/**
 * The session, as another process needs it to take it over: the option `session` of `connect`.
 *
 * Who knows the password owns the session, so `console.log` and `JSON.stringify` leave it out.
 */
export class SessionInfo implements SessionIdentity {
  readonly id: bigint;
  /** 16 bytes. */
  readonly password: Uint8Array;
  /** As negotiated, milliseconds: the least that a server gave to this session. */
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
