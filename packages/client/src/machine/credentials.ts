import type { CallFailure } from './call.ts';

/** Who the client says it is: goes out first on every connection. The caller that gave it is notified of the first answer. */
export class Credentials {
  readonly scheme: string;
  readonly auth: Uint8Array;
  #settle: ((failure: CallFailure | null) => void) | null;

  constructor(scheme: string, auth: Uint8Array, settle: ((failure: CallFailure | null) => void) | null) {
    this.scheme = scheme;
    this.auth = auth;
    this.#settle = settle;
  }

  /** null: a server has accepted them. Only the first time is told. */
  settleOnce(failure: CallFailure | null): void {
    const settle = this.#settle;
    this.#settle = null;
    settle?.(failure);
  }
}
