import type { AdminEvent } from '../audit/audit-line.ts';
import type { AdminAuthorization, Caller } from './authorization.ts';

/** Audits changes requested over the admin port: the caller and the result. */
export class AdminAudit {
  readonly #authorization: Pick<AdminAuthorization, 'describe'>;
  readonly #log: { add(event: AdminEvent): void } | null;

  /** @param log null: nothing is audited */
  constructor(authorization: Pick<AdminAuthorization, 'describe'>, log: { add(event: AdminEvent): void } | null) {
    this.#authorization = authorization;
    this.#log = log;
  }

  /** @param sessionId of the session that was to end; null: the change is of no single one */
  add(
    operation: AdminEvent['operation'],
    caller: Caller,
    result: AdminEvent['result'],
    sessionId: bigint | null = null,
  ): void {
    this.#log?.add({ operation, sessionId, caller: this.#authorization.describe(caller), result });
  }

  /** As the server's log names who asks: `ann at 10.0.0.9`. */
  nameOf(caller: Caller): string {
    const { users, host } = this.#authorization.describe(caller);
    return users.length === 0 ? host : `${users.join(', ')} at ${host}`;
  }
}
